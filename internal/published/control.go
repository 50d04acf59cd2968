package published

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// ControlAction is the effect of an operator's control on a key.
type ControlAction string

// Actions of a [Control], in the order in which they take precedence.
const (
	// ControlBlock refuses each request that makes the key.
	ControlBlock ControlAction = "block"
	// ControlAllow counts the requests that make the key, and exempts them from the limit of the
	// key's rule.
	ControlAllow ControlAction = "allow"
	// ControlPin holds the key to its rule's limit as if it were hot.
	ControlPin ControlAction = "pin"
)

// ControlHold stands for a key without a control that instances held and an operator released;
// see hotkeys.Watcher.SetHold. No operator sets it.
const ControlHold ControlAction = "hold"

// Valid reports whether a is one of the actions that operators set.
func (a ControlAction) Valid() bool {
	return a == ControlBlock || a == ControlAllow || a == ControlPin
}

// Control is an operator's decision about one key. It takes precedence over the key's exceptions
// in the rules file, and expires. A key has one control at most.
type Control struct {
	rules.Key
	Action ControlAction
	// Since is when the control was set, and Until when it ends.
	Since, Until time.Time
	// Why is the operator's reason, or empty.
	Why string
	// By is the Redis user who set it, or empty if Redis does not report one.
	By string
	// Claimed is the identity that the operator's program claims, such as "ann@laptop". Nothing
	// proves it.
	Claimed string
}

// Bounds of controls.
const (
	// MaxControls is the most keys of a namespace that have a control at a time.
	MaxControls = 1000
	// MaxControlTime is the longest duration of a control.
	MaxControlTime = 24 * time.Hour
	// MaxControlWhy bounds the reason of a Control, in bytes.
	MaxControlWhy = 256
	// MaxControlBy bounds the author of a Control, in bytes.
	MaxControlBy = 128
)

// ControlVersionField is the field of the controls' hash that holds their version. It is never
// the name of a key, since a key has a space.
const ControlVersionField = "version"

// MaxControl is the greatest size of a control in Redis, in bytes.
const MaxControl = 4096

// controlJSON is a control in JSON. Times are unix milliseconds on Redis's clock.
type controlJSON struct {
	Action  ControlAction `json:"action"`
	Since   int64         `json:"since"`
	Until   int64         `json:"until"`
	Why     string        `json:"why"`
	By      string        `json:"by"`
	Claimed string        `json:"claimed"`
}

func controlOf(c *Control) controlJSON {
	return controlJSON{c.Action, millis(c.Since, atHole), millis(c.Until, untilHole), c.Why, c.By, c.Claimed}
}

// EncodeControl returns the value of one entry of the controls' hash:
//
//	{"action":"block","since":1732172445123,"until":1732173045123,"why":"scraper","by":"ops","claimed":"ann@laptop"}
//
// The key itself is the field under which the value is stored. An empty action, and a zero Since or
// Until, are written as holes. The Lua script of the operator's command fills them, by Redis's clock.
func EncodeControl(c *Control) []byte { return encode(controlOf(c)) }

var (
	errControlKey  = errors.New("control: the key has no valid rule id, or is too long")
	errControl     = errors.New("control: unknown action, or a time or a text out of range")
	errControlSize = errors.New("control: too long")
)

// ParseControl reads a value that [EncodeControl] wrote under this member ([rules.Key.String]).
func ParseControl(member string, value []byte) (Control, error) {
	if len(value) > MaxControl {
		return Control{}, errControlSize
	}
	key, ok := rules.ParseKey(member)
	if !ok || !rules.ValidRuleID(key.Rule) || len(key.Text) > rules.MaxText {
		return Control{}, errControlKey
	}
	var raw controlJSON
	if err := json.Unmarshal(value, &raw); err != nil {
		return Control{}, fmt.Errorf("control: %w", err)
	}
	c, err := raw.parse(key)
	if err == nil && !c.Action.Valid() {
		err = errControl
	}
	return c, err
}

func (raw *controlJSON) parse(key rules.Key) (Control, error) {
	if !raw.Action.Valid() && raw.Action != ControlHold || raw.Since < 0 || raw.Until <= 0 || raw.Since > maxMillis || raw.Until > maxMillis ||
		len(raw.Why) > MaxControlWhy || len(raw.By) > MaxControlBy || len(raw.Claimed) > MaxControlBy {
		return Control{}, errControl
	}
	return Control{
		Key: key, Action: raw.Action, Since: time.UnixMilli(raw.Since), Until: time.UnixMilli(raw.Until),
		Why: raw.Why, By: raw.By, Claimed: raw.Claimed,
	}, nil
}

// ControlChange is a change of the controls in the form that the stream has: a control that was
// set or, if Release is true, one that an operator ended. In that case Since is when it ended,
// and Until when it would have ended. Why, By and Claimed are those of the operator who ended it.
type ControlChange struct {
	Release bool
	Control
}

type controlChange struct {
	Type string `json:"type"`
	Rule string `json:"rule"`
	Key  string `json:"key"`
	controlJSON
}

// EncodeControlChange returns a change:
//
//	{"type":"block","rule":"search-terms","key":"GET /search?q=phone","action":"block","since":1732172445123,…}
//
// The type is the action, or release. If the released key had no control, but instances may limit it
// during an outage of the aggregator, the action is [ControlHold]. The rest is as in
// [EncodeControl], holes included.
func EncodeControlChange(c *ControlChange) []byte {
	raw := controlChange{string(c.Action), c.Rule, c.Text, controlOf(&c.Control)}
	if c.Release {
		raw.Type = "release"
	}
	return encode(raw)
}

// ParseControlChange reads a value that [EncodeControlChange] wrote.
func ParseControlChange(value []byte) (ControlChange, error) {
	if len(value) > 2*MaxControl {
		return ControlChange{}, errControlSize
	}
	var raw controlChange
	if err := json.Unmarshal(value, &raw); err != nil {
		return ControlChange{}, fmt.Errorf("change of a control: %w", err)
	}
	if !rules.ValidRuleID(raw.Rule) || len(raw.Key) > rules.MaxText {
		return ControlChange{}, errControlKey
	}
	c, err := raw.parse(rules.Key{Rule: raw.Rule, Text: raw.Key})
	if err == nil && raw.Type != "release" && (raw.Type != string(c.Action) || !c.Action.Valid()) {
		err = errControl
	}
	return ControlChange{Release: raw.Type == "release", Control: c}, err
}

// A push on the controls' channel is {"version":"run id:n"}. It is a hint that no receiver
// parses: each one reads the controls from Redis.
