package aggregator

import (
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/aggregator/decode"
	"github.com/hotparam/hotparam/aggregator/internal/window"
)

// Publisher takes what the detector finds. Its methods are called from several
// goroutines and must neither block nor keep the slices.
type Publisher interface {
	// Publish takes a change of the hot set.
	Publish(hotparam.Change)
	// Refresh takes the present counts of all keys of one part that are hot: a key
	// that the publisher had no place for gets another chance.
	Refresh(part int, hot []hotparam.Hot)
	// Suspects takes all keys of one part that may be hot and are not yet known to be. They
	// replace those that the part reported before.
	Suspects(part int, suspects []hotparam.Hot)
	// Instances takes the live instances, with the arrival of the last packet of each.
	Instances([]hotparam.Instance)
}

// DetectorConfig is what a [Detector] needs; Rules and Publisher are required.
type DetectorConfig struct {
	Rules     *hotparam.Rules
	Publisher Publisher
	// Memory is how many bytes the windows of all parts may hold, shared evenly
	// by the rules; 0 is [DefaultMemory].
	Memory int64
	// Grace is how much later than a window counts may come and still be
	// placed; 0 is [decode.DefaultGrace].
	Grace time.Duration
	// Lag is how long counts take to arrive: a key cools by what is known of the time
	// before the lag. Zero is for callers that bring counts in order.
	Lag time.Duration
	// RateSpan is the time over which the published rate of a hot key is taken; 0 is
	// [DefaultRateSpan]. A source whose counts come in longer steps sets it to its step.
	RateSpan time.Duration
	// Part is the number of this detector's part of the keys, of Parts; 0 of 0 is all.
	// Homes names, by rule number, the part that has a rule which needs all its keys in one
	// place ([hotparam.Rule.Whole]), and is -1 for other rules. A nil Homes assigns the
	// parts in turn.
	Part, Parts int
	Homes       []int
	// OnVerdict is called with each decision, before it is published. Nil disables it.
	OnVerdict func(Verdict)
	// Explain is a key that OnAccount is called for at the end of each pane. A nil OnAccount
	// disables it.
	Explain   hotparam.Key
	OnAccount func(Account)
}

// DefaultRateSpan evens out what comes in flushes, and is short enough for a rate to
// be zero as soon as people look again.
const DefaultRateSpan = time.Second

// Detector finds which keys are hot. Thresholds on counts and jumps are evaluated on every
// count, those on shares and ranks when a pane is over by the lag, as the counts of the
// other keys may still arrive until then. A key cools when what could have been
// counted in a whole window is below the exit for the cool-down, and it has been
// hot for the hold. A Detector is used by one goroutine.
type Detector struct {
	publisher Publisher
	rules     []*ruleWatch // by rule number; nil: without a threshold, or in another part
	lag       time.Duration
	rateSpan  time.Duration
	suspects  suspects
	missing   *window.Missing
	keep      time.Duration // for so long what is missing matters
	onVerdict func(Verdict)
	account   *accountant // nil: of no key
	unnamed   int64
	refreshed bool // keys were told by the last refresh
}

// NewDetector returns a detector.
func NewDetector(c DetectorConfig) *Detector {
	if c.Memory == 0 {
		c.Memory = DefaultMemory
	}
	if c.Grace == 0 {
		c.Grace = decode.DefaultGrace
	}
	if c.RateSpan == 0 {
		c.RateSpan = DefaultRateSpan
	}
	c.Parts = max(1, c.Parts)
	if c.Homes == nil {
		c.Homes = homes(c.Rules, c.Parts)
	}
	d := &Detector{
		publisher: c.Publisher, lag: c.Lag, rateSpan: c.RateSpan, onVerdict: c.OnVerdict,
		rules: make([]*ruleWatch, len(c.Rules.Rules)), suspects: suspects{part: c.Part},
		missing: window.NewMissing(), keep: decode.Lookback(c.Rules) + c.Grace + c.Lag + time.Second,
	}
	hot := int64(0)
	for i := range c.Rules.Rules {
		if len(c.Rules.Rules[i].Hot) > 0 {
			hot++
		}
	}
	for i := range c.Rules.Rules {
		rule := &c.Rules.Rules[i]
		budget := c.Memory / max(1, hot)
		switch {
		case len(rule.Hot) == 0:
			continue
		case c.Homes[i] < 0:
			budget /= int64(c.Parts)
		case c.Homes[i] != c.Part:
			continue
		}
		d.rules[i] = newRuleWatch(i, rule, budget, max(c.Grace, c.Lag))
		for _, v := range d.rules[i].views {
			v.Window.SetMissing(d.missing, i)
			if v.history != nil {
				v.history.SetMissing(d.missing, i)
			}
		}
	}
	watches := 0
	for _, r := range d.rules {
		if r != nil {
			watches++
		}
	}
	d.suspects.share = maxSuspects / max(1, watches)
	if c.OnAccount != nil {
		d.account = &accountant{key: c.Explain, onAccount: c.OnAccount}
	}
	return d
}

// Advance moves the clock on to now: it closes the panes that are over by the lag, cools
// the keys that are no longer hot, and reports suspects.
func (d *Detector) Advance(now time.Time) { d.AdvanceTo(now, now.Add(-d.lag)) }

// AdvanceTo is like [Detector.Advance] for a caller that knows that all counts of before
// complete have arrived.
func (d *Detector) AdvanceTo(now, complete time.Time) {
	for _, r := range d.rules {
		if r == nil {
			continue
		}
		for _, v := range r.views {
			if v.isSetBack(now) {
				d.restart(r, v, now)
			}
		}
		d.moveTo(r, now, complete)
	}
	d.watchSuspects(now)
	d.missing.Sweep(now, d.keep)
}

// restart begins anew after the clock was set back by more than a window: all
// that comes would count as late until the clock is again where it was.
func (d *Detector) restart(r *ruleWatch, v *view, now time.Time) {
	for _, w := range r.hot {
		for _, t := range v.thresholds {
			if w.marks[t.number].hot {
				d.leave(r, t, w, v.closed, now, 0)
			}
		}
	}
	change := hotparam.Change{Cool: r.takeCooled(v, v.closed, now)}
	for _, w := range r.keys {
		if w.suspect != nil && w.suspect.view == v {
			d.suspects.drop(w)
		}
		r.unpin(v, w)
		r.release(w)
	}
	v.restart()
	d.publish(change)
}

// Refresh publishes the present counts of the keys that are hot, and lets go of
// what is no longer needed.
func (d *Detector) Refresh() {
	var hot []hotparam.Hot
	for _, r := range d.rules {
		if r == nil {
			continue
		}
		for _, w := range r.hot {
			if w.listed {
				hot = append(hot, r.present(w))
			}
		}
		for _, v := range r.views {
			v.tidyUp()
		}
	}
	if len(hot) > 0 || d.refreshed {
		d.publisher.Refresh(d.suspects.part, hot)
	}
	d.refreshed = len(hot) > 0
}

func (d *Detector) publish(change hotparam.Change) {
	if !change.Empty() {
		d.publisher.Publish(change)
	}
}

// Floor returns the most that can be hidden of any key in one of the windows of a rule,
// which is given by its number.
func (d *Detector) Floor(rule int) int64 {
	r := d.rules[rule]
	if r == nil {
		return 0
	}
	floor := int64(0)
	for _, v := range r.views {
		floor = max(floor, v.Floor())
	}
	return floor
}

// DetectorStats are a detector's figures.
type DetectorStats struct {
	Keys      int64   // keys with a count of their own
	Hot       int64   // keys that are hot and listed
	Explained int64   // keys that are hot for no other reason than one that is listed
	Usual     int64   // keys that are listed as usual
	Spared    int64   // of these, keys that are not limited, as another explains what is unusual
	Suspects  int64   // keys that may be hot and cannot be told yet
	Memory    int64   // bytes that the keys hold
	Evicted   int64   // keys that made room for others
	Unnamed   int64   // counts of keys that were hot and had no room for their name
	Late      int64   // counts that came too late for any pane
	Floor     int64   // the most that can be hidden of any key, of all rules
	Floors    []int64 // the same by the rules' numbers
}

// Stats returns the figures.
func (d *Detector) Stats() DetectorStats {
	s := DetectorStats{Suspects: int64(len(d.suspects.list)), Unnamed: d.unnamed, Floors: make([]int64, len(d.rules))}
	for i, r := range d.rules {
		if r == nil {
			continue
		}
		for _, w := range r.hot {
			if w.listed {
				s.Hot++
				if w.usual {
					s.Usual++
				}
				if w.spared {
					s.Spared++
				}
			} else {
				s.Explained++
			}
		}
		s.Floors[i] = d.Floor(i)
		s.Floor = max(s.Floor, s.Floors[i])
		var keys, late int64 // each view has the same keys and counts
		for _, v := range r.views {
			keys, late = max(keys, int64(v.Keys())), max(late, v.Late())
			s.Memory += v.memory()
			s.Evicted += v.Evicted()
		}
		s.Keys += keys
		s.Late += late
	}
	return s
}

// Merge adds the figures of another part.
func (s *DetectorStats) Merge(part *DetectorStats) {
	s.Keys += part.Keys
	s.Hot += part.Hot
	s.Explained += part.Explained
	s.Usual += part.Usual
	s.Spared += part.Spared
	s.Suspects += part.Suspects
	s.Memory += part.Memory
	s.Evicted += part.Evicted
	s.Unnamed += part.Unnamed
	s.Late += part.Late
	s.Floor = max(s.Floor, part.Floor)
	if len(s.Floors) == 0 { // a shard that has not reported has none
		s.Floors = make([]int64, len(part.Floors))
	}
	for i, floor := range part.Floors {
		s.Floors[i] = max(s.Floors[i], floor)
	}
}
