package aggregator

import (
	"time"

	"github.com/hotparam/hotparam/aggregator/internal/window"
	"github.com/hotparam/hotparam/internal/baseline"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/ring"
	"github.com/hotparam/hotparam/rules"
)

const (
	// dayPane is the width of the panes in which an hour is counted. It divides an hour, and is
	// short enough for a key's bytes to fit in 32 bits.
	dayPane = 5 * time.Minute
	// recordEvery is the interval in which the current hour is recorded.
	recordEvery = 5 * time.Minute
	// maxReferences bounds the references that are kept for a rule's keys.
	maxReferences = 1 << 14
)

var dayWindow = rules.Window{Pane: dayPane, Panes: int(time.Hour / dayPane)}

// hours counts the keys of a rule by the hour, and holds their counts at the same hour of
// earlier days. Only rules with a jump over days have it.
type hours struct {
	*window.Window
	days   *baseline.Days
	rule   uint64
	hasher *baseline.Hasher
	least  int64 // count in an hour below which a key is no jump's baseline
	began  int64 // second before which counts may be missing

	// references are those of one hour and version, by the hashes of this process.
	references map[uint64]knownReference
	hour       int64
	version    baseline.Version
}

type knownReference struct {
	baseline.Reference
	known bool
}

// hoursOf returns the hours of a rule. least is the result of [leastHourly]. They continue the
// hours of before, which may be nil.
func hoursOf(p rulePlace, least int64, before *ruleWatch) *hours {
	p.days.Want()
	var h *hours
	if before != nil {
		h = before.hours
	}
	if h == nil {
		h = &hours{days: p.days, rule: baseline.RuleHash(p.rule), began: -1, references: make(map[uint64]knownReference)}
		h.hasher = baseline.NewHasher(h.rule)
		h.Window = window.New(dayWindow, int64(p.late/dayPane)+2, p.budget)
	} else if h.Budget() != p.budget {
		h.Window = h.Window.Resize(p.budget, nil)
	}
	h.least = least
	// A partly counted hour has a proportionally lower least. The lowest is that of MinSeconds.
	h.NameFrom(max(1, least*baseline.MinSeconds/3600))
	return h
}

// leastHourly returns the least count in an hour that matters to a jump over days. Below it, the
// jump's factor times the mean per window is less than the jump's least count, which then decides
// alone. It returns 0 if the rule has no such jump.
func leastHourly(rule *rules.Rule) (least int64) {
	for i := range rule.Hot {
		t := &rule.Hot[i]
		if t.Kind != rules.Jump || t.Over != rules.OverDay {
			continue
		}
		// n in an hour are n × window / hour in a window.
		windows := rules.NewFraction(int64(time.Hour), int64(t.Rate.Per))
		n := max(1, rules.ScaleUp(t.Rate.N, windows, t.Factor.Inverse()))
		if least == 0 || n < least {
			least = n
		}
	}
	return least
}

// count adds a count to its hour.
func (h *hours) count(c *decode.Count) {
	if h != nil {
		h.Add(c.Hash, c.Text, h.PaneOf(c.When), c.N)
	}
}

// reference returns the count of a key at the hour of when on earlier days, and false if no
// such hour is known.
func (h *hours) reference(hash uint64, text []byte, when time.Time) (baseline.Reference, bool) {
	if h == nil {
		return baseline.Reference{}, false
	}
	hour, version := baseline.HourOf(when), h.days.Version()
	if hour != h.hour || version != h.version || len(h.references) >= maxReferences {
		clear(h.references)
		h.hour, h.version = hour, version
	}
	r, ok := h.references[hash]
	if !ok {
		r.Reference, r.known = h.days.Reference(hour, h.rule, h.hasher.Hash(text))
		h.references[hash] = r
	}
	return r.Reference, r.known
}

// record returns the counts of the keys in an hour up to an instant. It returns false if too
// little of the hour was counted, or not all keys are known.
func (h *hours) record(hour int64, until time.Time, room int) (baseline.RuleHour, bool) {
	start := baseline.StartOf(hour).Unix()
	seconds := min(until.Unix(), start+3600) - max(start, h.began)
	panes := int64(h.Panes)
	last := (hour+1)*panes - 1
	if h.began < 0 || seconds < baseline.MinSeconds || h.NamesRanOut(last) || !h.Keeps(baseline.StartOf(hour)) {
		return baseline.RuleHour{}, false
	}
	floor := max(1, h.least*seconds/3600)
	var keys []baseline.KeyCount
	h.Each(0, func(i int32) {
		if _, high := h.Span(h.Window.Hash(i), h.Name(i), last, panes); high >= floor {
			keys = append(keys, baseline.KeyCount{Hash: h.hasher.Hash(h.Name(i)), N: high})
		}
	})
	return baseline.NewRuleHour(h.rule, seconds, floor+h.FloorAt(last), keys, room), true
}

// advanceHours records the hours that ended before complete, and at intervals the current one,
// and moves the hours' clocks on.
func (d *Detector) advanceHours(complete time.Time) {
	if d.counted == 0 {
		return
	}
	hour := baseline.HourOf(complete)
	if since := complete.Sub(d.recorded); hour == d.hour && 0 <= since && since < recordEvery {
		return
	}
	if hour < d.hour || d.recorded.IsZero() { // the clock was set back, or this is the beginning
		d.beginHours(complete)
	}
	for d.hour = max(d.hour, hour-baseline.Kept); d.hour < hour; d.hour++ {
		d.recordHour(d.hour, baseline.StartOf(d.hour+1))
	}
	d.recordHour(hour, complete)
	d.recorded = complete
}

// beginHours forgets counts whose time is not known.
func (d *Detector) beginHours(complete time.Time) {
	d.hour = baseline.HourOf(complete)
	for _, r := range d.watches {
		if h := r.hours; h != nil && h.began >= 0 {
			h.Window, h.began = h.Window.Restart(), -1
		}
	}
}

// recordHour records the counts of an hour up to an instant.
func (d *Detector) recordHour(hour int64, until time.Time) {
	all := &baseline.Hour{Number: hour}
	for _, r := range d.watches {
		h := r.hours
		if h == nil {
			continue
		}
		h.Advance(h.Index(until))
		if h.began < 0 {
			h.began = until.Unix() + 1
		}
		if x, ok := h.record(hour, until, baseline.Room(d.cfg.Parts, d.counted)); ok {
			all.Rules = append(all.Rules, x)
		}
	}
	if len(all.Rules) > 0 {
		d.cfg.Days.Put(d.cfg.Part, d.cfg.Parts, all)
	}
}

// baseline bounds the count of entry i in the baseline that t, a jump, compares the window
// ending with pane last with. That is the same hour of earlier days or, if it is not known, the
// windows before this one.
func (t *threshold) baseline(i int32, text []byte, last int64) (low, high int64, windows rules.Fraction) {
	v := t.view
	if t.Over == rules.OverDay && last != ring.Never {
		if r, ok := v.watch.hours.reference(v.Hash(i), text, v.Start(last)); ok {
			return r.Low, r.High, rules.NewFraction(int64(time.Hour), int64(t.Rate.Per))
		}
	}
	return v.history.Baseline(v.Window, i, text, last, last <= v.closed)
}
