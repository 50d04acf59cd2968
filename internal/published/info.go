package published

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Holes mark the places in an encoded value for data that only Redis knows. A script fills them,
// with times of Redis's own clock. They are raw control bytes, which JSON text never contains.
const (
	holeVersion = "\x01" // the version after the change, or the action of a released control
	holeAt      = "\x02" // Redis's time, unix milliseconds
	holeUntil   = "\x03" // Redis's time plus the entry's time to live
	holeCool    = "\x04" // the cooled members, JSON strings joined by commas
)

// Times for which holes are written. No encoded time is negative.
const (
	atHole    = -2
	untilHole = -3
)

// holes replaces the markers by holes. Within a JSON string each quote has a backslash, so no
// user's text matches.
var holes = strings.NewReplacer(
	`"version":""`, `"version":"`+holeVersion+`"`, `"action":""`, `"action":"`+holeVersion+`"`,
	`"at":-2`, `"at":`+holeAt, `"since":-2`, `"since":`+holeAt, `"until":-3`, `"until":`+holeUntil,
	`"cool":null`, `"cool":[`+holeCool+`]`,
)

// encode returns a value as JSON on one line. Unlike [json.Marshal] it does not escape &, < and
// >, because people read these values in redis-cli.
func encode(value any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil { // no value has a field that JSON cannot encode
		panic(err)
	}
	return []byte(holes.Replace(strings.TrimSuffix(b.String(), "\n")))
}

// millis returns a time in unix milliseconds, or hole if t is zero.
func millis(t time.Time, hole int64) int64 {
	if t.IsZero() {
		return hole
	}
	return t.UnixMilli()
}

// finite returns f, or 0 if JSON cannot hold it.
func finite(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}

// info is a hot key in JSON. Times are unix milliseconds. A nil High means not known, and a nil
// Limit no limit. Earlier versions ignore cause and the fields after it.
type info struct {
	Low   *int64      `json:"low"`
	High  *int64      `json:"high"`
	Since *int64      `json:"since"`
	Until *int64      `json:"until"`
	Limit *string     `json:"limit"`
	Burst int64       `json:"burst"`
	Mode  rules.Mode  `json:"mode"`
	Scope rules.Scope `json:"scope,omitempty"`
	Owner string      `json:"owner"`
	Ratio *float64    `json:"ratio"`
	causeJSON
	Also      string `json:"also,omitempty"` // the other thresholds that hold the key hot
	Estimated bool   `json:"estimated,omitempty"`
	Usual     bool   `json:"usual,omitempty"`
	Spared    bool   `json:"spared,omitempty"`
	Top       *top   `json:"top,omitempty"`
	Hold      *hold  `json:"hold,omitempty"`

	Outcomes *fleetOutcomes `json:"outcomes,omitempty"`
}

// EncodeInfo returns the value of one entry of the info hash:
//
//	{"low":212,"high":230,"since":1732172445123,"until":1732172460123,"limit":"50/s","burst":100,"mode":"limit","owner":"statsd","ratio":1.06,"kind":"rate","threshold":"200/s","min":200,"window_ms":1000,"unit":"requests"}
//
// The key itself is the member under which the value is stored. If Until is zero, the value has a
// hole for it.
func EncodeInfo(h Hot) []byte { return encode(infoOf(&h)) }

func infoOf(h *Hot) info {
	since, until, ratio := h.Since.UnixMilli(), millis(h.Until, untilHole), finite(h.Ratio)
	i := info{
		Low: &h.Low, Since: &since, Until: &until, Burst: h.Burst, Mode: h.Mode, Scope: h.Scope, Owner: h.Owner, Ratio: &ratio,
		Also: h.Also, Estimated: h.Estimated, Usual: h.Usual, Spared: h.Spared, Top: topOf(h.Top), Hold: holdOf(h.Hold),
		Outcomes: fleetOutcomesOf(h.Outcomes),
	}
	if h.High != Unknown {
		i.High = &h.High
	}
	if !h.Limit.IsZero() {
		limit := h.Limit.String()
		i.Limit = &limit
	}
	if c := h.Cause; !c.IsZero() {
		i.causeJSON = causeJSON{c.Kind.String(), c.String(), c.Rate.N, c.Rate.Per.Milliseconds(), c.Unit.String()}
	}
	return i
}

var (
	errInfoMissing = errors.New("low, since or until is missing")
	errInfoCount   = errors.New("a count is negative, or high is below low")
	errInfoRatio   = errors.New("the ratio is negative")
	errInfoTime    = errors.New("a time is not unix milliseconds")
	errInfoMode    = errors.New("the mode is not limit, wait, serve, shadow or watch")
	errInfoLimit   = errors.New("mode and limit do not agree")
)

// ParseInfo reads a value that [EncodeInfo] wrote, with its fields in any order and with unknown
// fields. Earlier versions wrote no ratio; it is then 1, since the key reached its threshold. Key
// and Rate are left empty, since they are the member and its score.
func ParseInfo(value []byte) (Hot, error) {
	var i info
	err := json.Unmarshal(value, &i)
	if err == nil {
		var h Hot
		if h, err = i.hot(); err == nil {
			return h, nil
		}
	}
	return Hot{}, fmt.Errorf("info of a hot key: %w", err)
}

// maxMillis is the last millisecond of the year 9999. JSON readers that hold numbers as float64
// represent all lower ones exactly.
const maxMillis = 253402300799999

func (i *info) hot() (Hot, error) {
	if i.Low == nil || i.Since == nil || i.Until == nil {
		return Hot{}, errInfoMissing
	}
	h := Hot{Low: *i.Low, High: Unknown, Ratio: 1, Burst: i.Burst, Mode: i.Mode, Scope: i.Scope, Owner: i.Owner, Estimated: i.Estimated, Usual: i.Usual, Spared: i.Usual && i.Spared, Cause: i.parse(), Also: i.Also}
	if i.Ratio != nil {
		if h.Ratio = *i.Ratio; h.Ratio < 0 {
			return Hot{}, errInfoRatio
		}
	}
	if i.High != nil {
		h.High = *i.High
		if h.High < h.Low {
			return Hot{}, errInfoCount
		}
	}
	if h.Low < 0 || h.Burst < 0 {
		return Hot{}, errInfoCount
	}
	if *i.Since < 0 || *i.Since > maxMillis || *i.Until < 0 || *i.Until > maxMillis {
		return Hot{}, errInfoTime
	}
	h.Since, h.Until = time.UnixMilli(*i.Since), time.UnixMilli(*i.Until)
	if i.Limit != nil {
		limit, err := rules.ParseRate(*i.Limit)
		if err != nil {
			return Hot{}, err
		}
		h.Limit = limit
	}
	switch h.Mode {
	case rules.ModeLimit, rules.ModeWait, rules.ModeServe, rules.ModeShadow:
		if h.Limit.IsZero() != (h.Burst == 0) { // the limit has both, or neither if it is of concurrency alone
			return Hot{}, errInfoLimit
		}
	case rules.ModeWatch:
		if !h.Limit.IsZero() {
			return Hot{}, errInfoLimit
		}
	default:
		return Hot{}, errInfoMode
	}
	var err error
	if h.Top, err = i.Top.attribution(); err != nil {
		return Hot{}, err
	}
	if h.Hold, err = i.Hold.parse(); err != nil {
		return Hot{}, err
	}
	h.Outcomes = i.Outcomes.parse()
	return h, nil
}

// causeJSON is the threshold that made a key hot. A jump over days has its past after the window,
// "8x/10s over day", which earlier versions ignore. Min is the count that was reached, or for the
// kinds that compare the least count. Min and the entry's low and high are numbers of the unit,
// within the window.
type causeJSON struct {
	Kind      string `json:"kind,omitempty"`
	Threshold string `json:"threshold,omitempty"`
	Min       int64  `json:"min,omitempty"`
	WindowMS  int64  `json:"window_ms,omitempty"`
	Unit      string `json:"unit,omitempty"`
}

// maxWindowMS is the length of the longest window, in milliseconds.
const maxWindowMS = int64(rules.MaxWindow / time.Millisecond)

// parse returns the cause. If it is missing, or was written by a later version in another form,
// the result is zero: the cause is for people alone, and must not cost the entry.
func (i *causeJSON) parse() Cause {
	if i.Min < 1 || i.WindowMS < 1 || i.WindowMS > maxWindowMS {
		return Cause{}
	}
	rate := rules.Rate{N: i.Min, Per: time.Duration(i.WindowMS) * time.Millisecond}
	c, ok := parseCause(i.Kind, i.Unit, i.Threshold, rate)
	if !ok {
		return Cause{}
	}
	return c
}

// maxOrigin is the greatest length of an origin's name, in bytes.
const maxOrigin = 512

// top lists where a hot key's requests come from and go to.
type top struct {
	Routes    []originJSON `json:"routes,omitempty"`
	Instances []originJSON `json:"instances,omitempty"`
	Callers   []originJSON `json:"callers,omitempty"`
	Explains  int          `json:"explains,omitempty"`
}

type originJSON struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
	Over  int64  `json:"over,omitempty"`
}

// topOf returns the attribution with its values cut to the bounds that a reader checks. This part
// of an entry is for people alone, and must not cost the limit.
func topOf(a *Attribution) *top {
	if a == nil {
		return nil
	}
	list := func(from []Origin) (to []originJSON) {
		for _, o := range from[:min(len(from), MaxOrigins)] {
			name := strings.ToValidUTF8(o.Name, "\uFFFD")
			if len(name) > maxOrigin {
				name = strings.ToValidUTF8(name[:maxOrigin], "") // cuts half a character at the end
			}
			count := max(0, o.Count)
			to = append(to, originJSON{name, count, max(0, min(o.Over, count))})
		}
		return to
	}
	return &top{list(a.Routes), list(a.Instances), list(a.Callers), max(0, a.Explains)}
}

var errTop = errors.New("top: a count is negative or over more than the count, or a name is too long")

// attribution returns the parsed attribution, or an error if it is out of bounds. If there are
// more origins than this version knows, it returns the first ones.
func (t *top) attribution() (*Attribution, error) {
	if t == nil {
		return nil, nil
	}
	ok := t.Explains >= 0
	list := func(from []originJSON) (to []Origin) {
		for _, o := range from[:min(len(from), MaxOrigins)] {
			ok = ok && len(o.Name) <= maxOrigin && o.Over >= 0 && o.Over <= o.Count
			to = append(to, Origin(o))
		}
		return to
	}
	a := &Attribution{Routes: list(t.Routes), Instances: list(t.Instances), Callers: list(t.Callers), Explains: t.Explains}
	if !ok {
		return nil, errTop
	}
	return a, nil
}
