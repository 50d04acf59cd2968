package published

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Version names one state of the published hot set, written "run id:n". N rises by one with every
// change of the set, but not of a rate. A run id identifies one unbroken history: when Redis
// loses state, a new history starts under another run id.
type Version struct {
	Run string
	N   uint64
}

var errVersion = errors.New(`version of the hot set: want "run id:n"`)

// maxRun bounds a run id. A publisher's has 16 hex digits.
const maxRun = 64

// ParseVersion reads a version that [Version.String] wrote.
func ParseVersion(s string) (Version, error) {
	run, digits, ok := strings.Cut(s, ":")
	if !ok || run == "" || len(run) > maxRun || strings.ContainsFunc(run, notRun) {
		return Version{}, errVersion
	}
	n, err := strconv.ParseUint(digits, 10, 53) // the publisher's script counts in float64
	if err != nil || n == 0 || digits[0] == '0' || digits[0] == '+' {
		return Version{}, errVersion
	}
	return Version{Run: run, N: n}, nil
}

func notRun(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

// IsZero reports whether there is no version: nothing was published yet.
func (v Version) IsZero() bool { return v == Version{} }

// String returns the version in the form that Redis has, or "" for the zero value.
func (v Version) String() string {
	if v.IsZero() {
		return ""
	}
	return v.Run + ":" + strconv.FormatUint(v.N, 10)
}

// MaxPush is the greatest size of a change on the channel, in bytes. For a longer one only its
// version is pushed, and the change is read from the stream.
const MaxPush = 64 << 10

// Push is one change of the published hot set, in the form that is pushed on the channel and
// kept in the stream.
type Push struct {
	Version Version
	// At is when Redis made the change, on Redis's clock.
	At time.Time
	// Beat is the time that the publisher's heartbeat had left at that instant.
	Beat time.Duration
	// Hot holds the keys that became hot, or whose limit changed.
	Hot []PushEntry
	// Cool holds the keys that are no longer hot.
	Cool []rules.Key
	// Fleet is a change of the suspects. It is sent with a version alone, and never with a change
	// of the hot set.
	Fleet *FleetChange
}

// PushEntry is a hot key in a [Push].
type PushEntry struct {
	Hot
	// TTL is the time from At to Until.
	TTL time.Duration
}

// VersionAlone reports whether the message has no change of the hot set, because the change was
// too long to be pushed or there was none.
func (c *Push) VersionAlone() bool { return c.At.IsZero() }

type changeJSON struct {
	Version string       `json:"version"`
	At      int64        `json:"at"`
	Beat    int64        `json:"beat_ms"`
	Hot     []hotEntry   `json:"hot"`
	Cool    []string     `json:"cool"`
	Fleet   *fleetChange `json:"fleet,omitempty"`
}

type hotEntry struct {
	Rule string  `json:"rule"`
	Key  string  `json:"key"`
	Rate float64 `json:"rate"`
	TTL  int64   `json:"ttl_ms"`
	Info info    `json:"info"`
}

// EncodePush returns a change:
//
//	{"version":"6f1c0a2b9d3e4f58:42","at":1732172445123,"beat_ms":5000,
//	 "hot":[{"rule":"search-terms","key":"GET /search?q=phone","rate":212,"ttl_ms":15000,"info":{…}}],
//	 "cool":["search-terms GET /search?q=tablet"]}
//
// on one line, with the info as [EncodeInfo] writes it. If the version is zero, there are holes
// for it, for at, and for the cooled members; if Until is zero, there is one for it. The
// publisher's script fills them.
func EncodePush(c *Push) []byte {
	raw := changeJSON{Version: c.Version.String(), At: millis(c.At, atHole), Beat: c.Beat.Milliseconds(), Hot: []hotEntry{}}
	for i := range c.Hot {
		e := &c.Hot[i]
		raw.Hot = append(raw.Hot, hotEntry{e.Rule, e.Text, finite(e.Rate), e.TTL.Milliseconds(), infoOf(&e.Hot)})
	}
	if !c.Version.IsZero() { // otherwise it is nil, which is encoded as a hole
		raw.Cool = []string{}
	}
	for _, key := range c.Cool {
		raw.Cool = append(raw.Cool, key.String())
	}
	return encode(raw)
}

var (
	errChangeTime = errors.New("at, beat_ms or ttl_ms is out of range")
	errChangeKey  = errors.New("a key has no valid rule id")
	errChangeRate = errors.New("a rate is negative")
)

// maxTTLMillis bounds a time to live to a day; real ones are seconds.
const maxTTLMillis = 24 * 60 * 60 * 1000

// ParsePush reads a value that [EncodePush] wrote, or a version alone: {"version":"…"}, with
// or without a [FleetChange]. It returns the whole change or an error.
func ParsePush(value []byte) (Push, error) {
	var raw changeJSON
	if err := json.Unmarshal(value, &raw); err != nil {
		return Push{}, fmt.Errorf("change of the hot set: %w", err)
	}
	version, err := ParseVersion(raw.Version)
	if err != nil {
		return Push{}, err
	}
	c := Push{Version: version}
	if raw.At == 0 && len(raw.Hot) == 0 && len(raw.Cool) == 0 {
		c.Fleet, err = raw.Fleet.parse()
	} else {
		err = raw.fill(&c)
	}
	if err != nil {
		return Push{}, fmt.Errorf("change %s of the hot set: %w", version, err)
	}
	return c, nil
}

func (raw *changeJSON) fill(c *Push) error {
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
		c.Hot = append(c.Hot, PushEntry{Hot: h, TTL: time.Duration(r.TTL) * time.Millisecond})
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

// Before holds the state of a change's keys before it, by member ([rules.Key.String]). It is for
// readers of the stream that have not seen the keys become hot.
type Before struct {
	// Cool holds the keys that cooled, with their last counts. Key is not set.
	Cool map[string]Hot
	// Again holds the hot keys of the change that were hot before: the change wrote them with
	// another limit, or under another owner or publisher.
	Again map[string]bool
}

// ParseBefore reads the field "was" of an entry of the stream, which the publisher's script
// writes:
//
//	{"cool":{"search-terms GET /search?q=tablet":{"rate":3,"info":{…}}},
//	 "again":["search-terms GET /search?q=phone"]}
//
// The result is empty for entries of earlier versions. Unreadable parts are left out.
func ParseBefore(value string) Before {
	var raw struct {
		Cool map[string]struct {
			Rate float64         `json:"rate"`
			Info json.RawMessage `json:"info"`
		} `json:"cool"`
		Again []string `json:"again"`
	}
	if value == "" || json.Unmarshal([]byte(value), &raw) != nil {
		return Before{}
	}
	was := Before{Cool: make(map[string]Hot, len(raw.Cool)), Again: make(map[string]bool, len(raw.Again))}
	for _, member := range raw.Again {
		was.Again[member] = true
	}
	for member, before := range raw.Cool {
		if h, err := ParseInfo(before.Info); err == nil {
			h.Rate = max(0, before.Rate)
			was.Cool[member] = h
		}
	}
	return was
}

// Bounds of the published data about a fleet.
const (
	MaxSuspects  = 1000    // of one namespace
	MaxInstances = 100_000 // of one namespace
	// maxDigest bounds the digest of the suspects. The script's has 40 hex digits.
	maxDigest = 64
)

// Beat is the value of the publishers' heartbeat, a summary of the fleet. The publisher's script
// writes it:
//
//	{"instances":20,"suspects":"da39a3ee5e6b4b0d3255bfef95601890afd80709"}
type Beat struct {
	// Instances is the number of instances that send counts.
	Instances int `json:"instances"`
	// Suspects is a digest of the suspects, whatever their rates. It is empty if there are none.
	Suspects string `json:"suspects"`
}

var errBeat = errors.New("heartbeat: instances or the digest of the suspects is out of range")

// ParseBeat reads a heartbeat.
func ParseBeat(value []byte) (Beat, error) {
	var b Beat
	if err := json.Unmarshal(value, &b); err != nil {
		return Beat{}, fmt.Errorf("heartbeat: %w", err)
	}
	if b.Instances < 0 || b.Instances > MaxInstances || len(b.Suspects) > maxDigest {
		return Beat{}, errBeat
	}
	return b, nil
}

// FleetChange is a change of the suspects, in the form that is pushed on the channel of the hot
// set's changes. The publisher's script writes it, on one line:
//
//	{"version":"6f1c0a2b9d3e4f58:42","fleet":{"instances":20,
//	 "was":"da39…","suspects":"3f78…","new":["search-terms GET /search?q=phone"],"over":["search-terms GET /search?q=tablet"]}}
//
// Version is that of the hot set, which a change of the suspects does not change. A reader that
// does not know the field fleet treats the message as a version alone. A change that is too long
// for one message is sent as several that have no digests and nothing but new. The next poll then
// reads the rest.
type FleetChange struct {
	// Instances is the number of instances that send counts.
	Instances int
	// Was and Suspects are the digests before and after, as in [Beat].
	Was, Suspects string
	// Whole reports whether the message has all changes between the digests.
	Whole bool
	// New are keys that became suspects. Over are keys that no longer are.
	New, Over []rules.Key
}

type fleetChange struct {
	Instances int      `json:"instances"`
	Was       *string  `json:"was"`
	Suspects  *string  `json:"suspects"`
	New       []string `json:"new"`
	Over      []string `json:"over"`
}

var errFleet = errors.New("instances, a digest or the number of suspects is out of range")

func (raw *fleetChange) parse() (*FleetChange, error) {
	if raw == nil {
		return nil, nil
	}
	f := &FleetChange{Instances: raw.Instances}
	if raw.Was != nil && raw.Suspects != nil {
		f.Was, f.Suspects, f.Whole = *raw.Was, *raw.Suspects, true
	}
	if f.Instances < 0 || f.Instances > MaxInstances || len(f.Was) > maxDigest || len(f.Suspects) > maxDigest ||
		len(raw.New) > MaxSuspects || len(raw.Over) > MaxSuspects {
		return nil, errFleet
	}
	var err error
	if f.New, err = parseMembers(raw.New); err != nil {
		return nil, err
	}
	f.Over, err = parseMembers(raw.Over)
	return f, err
}
