package hotkeys

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/redisconfig"
	"github.com/hotparam/hotparam/rules"
)

//go:embed lua/control.lua
var controlLua string

var controlScript = redis.NewScript(controlLua)

// ControlOrder is an operator's order for a key.
type ControlOrder struct {
	Key    rules.Key
	Action published.ControlAction
	// For is how long the control lasts: from 1 ms to [published.MaxControlTime].
	For time.Duration
	// Why is the reason, at most [published.MaxControlWhy] bytes.
	Why string
	// Claimed is the identity that the operator claims, at most [published.MaxControlBy] bytes.
	Claimed string
}

// ErrTooManyControls means that a namespace has [published.MaxControls] controls.
var ErrTooManyControls = errors.New("the maximum number of controls is set: release some first")

// ErrNoControl means that the key has no control.
var ErrNoControl = errors.New("the key has no control")

func (o *ControlOrder) validate() error {
	switch {
	case !o.Action.Valid():
		return fmt.Errorf("action %q: want pin, block or allow", o.Action)
	case o.For < time.Millisecond || o.For > published.MaxControlTime:
		return fmt.Errorf("for %v: want more than 0, at most %v", o.For, published.MaxControlTime)
	}
	return validateOperator(o.Key, o.Why, o.Claimed)
}

func validateOperator(key rules.Key, why, claimed string) error {
	switch {
	case !rules.ValidRuleID(key.Rule):
		return fmt.Errorf("rule %q: not the id of a rule", key.Rule)
	case key.Text == "" || len(key.Text) > rules.MaxText:
		return fmt.Errorf("key of %d bytes: want 1 to %d", len(key.Text), rules.MaxText)
	case len(why) > published.MaxControlWhy:
		return fmt.Errorf("why: %d bytes, want at most %d", len(why), published.MaxControlWhy)
	case len(claimed) > published.MaxControlBy:
		return fmt.Errorf("claimed user: %d bytes, want at most %d", len(claimed), published.MaxControlBy)
	case !utf8.ValidString(key.Text + why + claimed):
		return errors.New("key, why and claimed user must be valid UTF-8")
	}
	return nil
}

// CarryOut carries out an order. With an action it sets the key's control, which replaces the
// present one, and returns it. By is the Redis user of the client. Instances apply it within a
// second.
//
// Without an action it ends the key's control and returns it, with By, Why and Claimed replaced by
// those of the order. Instances that hold hot keys ([Watcher.SetHold]) end the hold of the key. If
// the key has no control and an instance holds keys, the action of the result is
// [published.ControlHold]. Otherwise CarryOut returns [ErrNoControl].
//
// The deadline is that of ctx.
func CarryOut(ctx context.Context, client redis.UniversalClient, namespace string, order ControlOrder) (published.Control, error) {
	if order.Action == "" {
		return releaseControl(ctx, client, namespace, order)
	}
	return setControl(ctx, client, namespace, order)
}

func setControl(ctx context.Context, client redis.UniversalClient, namespace string, order ControlOrder) (_ published.Control, err error) {
	defer wrapError(&err, string(order.Action))
	if err := order.validate(); err != nil {
		return published.Control{}, err
	}
	c := published.Control{Key: order.Key, Action: order.Action, Why: order.Why, Claimed: order.Claimed}
	return operate(ctx, client, namespace, &c, order.For)
}

func releaseControl(ctx context.Context, client redis.UniversalClient, namespace string, order ControlOrder) (_ published.Control, err error) {
	defer wrapError(&err, "release")
	if err := validateOperator(order.Key, order.Why, order.Claimed); err != nil {
		return published.Control{}, err
	}
	c := published.Control{Key: order.Key, Why: order.Why, Claimed: order.Claimed}
	got, err := operate(ctx, client, namespace, &c, 0)
	if errors.Is(err, ErrNoControl) && AreKeysHeld(ctx, client, namespace) {
		return operate(ctx, client, namespace, &c, maxHold)
	}
	return got, err
}

// AreKeysHeld reports whether the heartbeat of an instance reports held hot keys. The deadline is
// that of ctx.
func AreKeysHeld(ctx context.Context, client redis.UniversalClient, namespace string) bool {
	members, err := ListMembers(ctx, client, namespace)
	return err == nil && slices.ContainsFunc(members, func(m published.Member) bool { return m.Held > 0 })
}

// operate runs the operator's script. c lacks its times and By. Without an action it is a release; a
// release with a span is recorded even if the key has no control.
func operate(ctx context.Context, client redis.UniversalClient, namespace string, c *published.Control, span time.Duration) (published.Control, error) {
	if err := redisconfig.Namespace(namespace); err != nil {
		return published.Control{}, err
	}
	var err error
	if c.By, err = whoAmI(ctx, client); err != nil {
		return published.Control{}, err
	}
	layout := published.NewLayout(namespace)
	change, kind := published.ControlChange{Release: c.Action == "", Control: *c}, "set"
	if change.Release {
		kind = "release"
	}
	answer, err := controlScript.Run(ctx, client, []string{layout.Control, layout.ControlEvents},
		layout.Control, kind, c.Key.String(), published.EncodeControl(c), published.EncodeControlChange(&change), span.Milliseconds(),
		newID(), published.MaxControls, maxControlEvents).StringSlice()
	switch {
	case err != nil:
		return published.Control{}, err
	case len(answer) != 5:
		return published.Control{}, fmt.Errorf("unexpected answer %q", answer)
	case answer[0] == "none":
		return published.Control{}, ErrNoControl
	case answer[0] == "full":
		return published.Control{}, ErrTooManyControls
	}
	now, errNow := strconv.ParseInt(answer[1], 10, 64)
	end, errEnd := strconv.ParseInt(answer[2], 10, 64)
	if answer[0] != "ok" || errNow != nil || errEnd != nil {
		return published.Control{}, fmt.Errorf("unexpected answer %q", answer)
	}
	c.Since, c.Until = time.UnixMilli(now), time.UnixMilli(end)
	if change.Release {
		c.Action = published.ControlAction(answer[3])
	}
	return *c, nil
}

// whoAmI returns the Redis user of the client. It is empty if Redis has no users, or does not
// report them.
func whoAmI(ctx context.Context, client redis.UniversalClient) (string, error) {
	user, err := client.Do(ctx, "ACL", "WHOAMI").Text()
	var answer redis.Error
	switch {
	case err == nil:
		return strings.ToValidUTF8(user[:min(len(user), published.MaxControlBy)], ""), nil
	case errors.As(err, &answer) && aboutCommand(err):
		return "", nil // Redis 5, or without the right
	}
	return "", err
}
