package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// MaxPush is the most bytes that a change has on the channel. A longer one is
// pushed as its version alone, and read from the stream.
const MaxPush = 64 << 10

// HotChange is one change of the published hot set, as it is pushed on the
// channel and kept in the stream.
type HotChange struct {
	Version HotVersion
	// At is when Redis made the change, on Redis's clock.
	At time.Time
	// Beat is how long the publisher's heartbeat was good for at that instant.
	Beat time.Duration
	// Hot became hot, or changed their limit.
	Hot []HotEntry
	// Cool are hot no longer.
	Cool []rules.Key
	// Fleet is a change of the suspects; it comes with a version alone, and
	// never with a change of the hot set.
	Fleet *FleetChange
}

// HotEntry is a hot key in a [HotChange].
type HotEntry struct {
	rules.Hot
	// TTL is the time from At to Until.
	TTL time.Duration
}

// VersionAlone reports whether there is no change of the hot set in the message: it
// was too long to be pushed, or there was none.
func (c *HotChange) VersionAlone() bool { return c.At.IsZero() }

// AppendHotChange appends a change:
//
//	{"version":"6f1c0a2b9d3e4f58:42","at":1732172445123,"beat_ms":5000,
//	 "hot":[{"rule":"search-terms","key":"GET /search?q=phone","rate":212,"ttl_ms":15000,"info":{…}}],
//	 "cool":["search-terms GET /search?q=tablet"]}
//
// on one line, the info as [AppendHotInfo] writes it. Where the version is zero
// there are holes for it, for at, and for the cooled members, and where Until
// is zero for that: the publisher's script fills them.
func AppendHotChange(dst []byte, c *HotChange) []byte {
	dst = append(dst, `{"version":"`...)
	template := c.Version.IsZero()
	if template {
		dst = append(dst, holeVersion)
	} else {
		dst = append(dst, c.Version.String()...)
	}
	dst = append(dst, `","at":`...)
	if template {
		dst = append(dst, holeAt)
	} else {
		dst = strconv.AppendInt(dst, c.At.UnixMilli(), 10)
	}
	dst = strconv.AppendInt(append(dst, `,"beat_ms":`...), c.Beat.Milliseconds(), 10)
	dst = append(dst, `,"hot":[`...)
	for i := range c.Hot {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendHotEntry(dst, &c.Hot[i])
	}
	dst = append(dst, `],"cool":[`...)
	if template {
		dst = append(dst, holeCool)
	}
	for i, key := range c.Cool {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSONString(dst, key.String())
	}
	return append(dst, `]}`...)
}

func appendHotEntry(dst []byte, e *HotEntry) []byte {
	dst = appendJSONString(append(dst, `{"rule":`...), e.Rule)
	dst = appendJSONString(append(dst, `,"key":`...), e.Text)
	dst = appendJSONFloat(append(dst, `,"rate":`...), e.Rate)
	dst = strconv.AppendInt(append(dst, `,"ttl_ms":`...), e.TTL.Milliseconds(), 10)
	dst = AppendHotInfo(append(dst, `,"info":`...), e.Hot)
	return append(dst, '}')
}

type hotChange struct {
	Version string `json:"version"`
	At      int64  `json:"at"`
	Beat    int64  `json:"beat_ms"`
	Hot     []struct {
		Rule string  `json:"rule"`
		Key  string  `json:"key"`
		Rate float64 `json:"rate"`
		TTL  int64   `json:"ttl_ms"`
		Info hotInfo `json:"info"`
	} `json:"hot"`
	Cool  []string     `json:"cool"`
	Fleet *fleetChange `json:"fleet"`
}

var (
	errChangeTime = errors.New("at, beat_ms or ttl_ms is out of range")
	errChangeKey  = errors.New("a key has no valid rule id")
	errChangeRate = errors.New("a rate is negative")
)

// maxTTLMillis bounds a time to live at a day; real ones are seconds.
const maxTTLMillis = 24 * 60 * 60 * 1000

// ParseHotChange reads what [AppendHotChange] wrote, or a version alone:
// {"version":"…"}, with a [FleetChange] or without. A change is taken as a whole
// or not at all.
func ParseHotChange(value []byte) (HotChange, error) {
	var raw hotChange
	if err := json.Unmarshal(value, &raw); err != nil {
		return HotChange{}, fmt.Errorf("wire: change of the hot set: %w", err)
	}
	version, err := ParseHotVersion(raw.Version)
	if err != nil {
		return HotChange{}, err
	}
	c := HotChange{Version: version}
	if raw.At == 0 && len(raw.Hot) == 0 && len(raw.Cool) == 0 {
		c.Fleet, err = raw.Fleet.change()
	} else {
		err = raw.fill(&c)
	}
	if err != nil {
		return HotChange{}, fmt.Errorf("wire: change %s of the hot set: %w", version, err)
	}
	return c, nil
}

func (raw *hotChange) fill(c *HotChange) error {
	if raw.At <= 0 || raw.At > maxMillis || raw.Beat < 0 || raw.Beat > maxTTLMillis {
		return errChangeTime
	}
	c.At, c.Beat = time.UnixMilli(raw.At), time.Duration(raw.Beat)*time.Millisecond
	for i := range raw.Hot {
		r := &raw.Hot[i]
		h, err := r.Info.hot()
		switch {
		case err != nil:
			return err
		case !rules.ValidRuleID(r.Rule):
			return errChangeKey
		case r.Rate < 0:
			return errChangeRate
		case r.TTL < 0 || r.TTL > maxTTLMillis:
			return errChangeTime
		}
		h.Key, h.Rate = rules.Key{Rule: r.Rule, Text: r.Key}, r.Rate
		c.Hot = append(c.Hot, HotEntry{Hot: h, TTL: time.Duration(r.TTL) * time.Millisecond})
	}
	var err error
	c.Cool, err = parseMembers(raw.Cool)
	return err
}

func parseMembers(members []string) ([]rules.Key, error) {
	var keys []rules.Key
	for _, member := range members {
		key, ok := rules.ParseKey(member)
		if !ok || !rules.ValidRuleID(key.Rule) {
			return nil, errChangeKey
		}
		keys = append(keys, key)
	}
	return keys, nil
}
