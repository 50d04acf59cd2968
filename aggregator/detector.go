package aggregator

import (
	"iter"
	"time"

	"github.com/hotparam/hotparam/aggregator/internal/window"
	"github.com/hotparam/hotparam/internal/baseline"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// Publisher receives the results of the detector. Its methods are called from several
// goroutines. They must neither block nor keep the slices.
type Publisher interface {
	// Publish publishes a change of the hot set.
	Publish(published.Change)
	// Refresh receives the current counts of all hot keys of one part. A key that the publisher
	// had no room for gets another chance.
	Refresh(part int, hot []published.Hot)
	// Suspects receives all keys of one part that may be hot. They replace those that the part
	// reported before.
	Suspects(part int, suspects []published.Hot)
	// Instances receives the live instances, each with the arrival of its last packet.
	Instances([]published.Instance)
}

// DetectorConfig configures a [Detector]. Rules and Publisher are required.
type DetectorConfig struct {
	Rules     *rules.Rules
	Publisher Publisher
	// Memory is the size in bytes of the windows of all parts, shared evenly by the rules. Zero
	// means [DefaultMemory].
	Memory int64
	// Grace is how much older than a window a count may be and still be counted. Zero means
	// [decode.DefaultGrace].
	Grace time.Duration
	// Lag is how long counts take to arrive. Keys cool by the counts from before the lag. Zero
	// is for callers that pass counts in order.
	Lag time.Duration
	// RateSpan is the time over which the published rate of a hot key is taken. Zero means
	// one second. A source whose counts arrive in longer steps sets it to its step.
	RateSpan time.Duration
	// Part is the number of this detector's part of the keys, out of Parts. Zero Parts means
	// one. Homes has, by rule number, the part that owns a rule which needs all its keys in one
	// place ([rules.Rule.Whole]), and -1 for other rules. A nil Homes distributes these rules
	// over the parts.
	Part, Parts int
	Homes       []int
	// Start is when the detector begins to receive counts. Earlier counts are unknown, so a
	// window has no high count until it was seen whole. Thresholds that compare wait until
	// their references were. A zero Start means that there were no earlier counts.
	Start time.Time
	// Days has the counts of keys on earlier days, for jumps over days, and receives their
	// counts of today. With nil Days such jumps are over the recent past.
	Days *baseline.Days
	// OnlySuspect makes judges of costs hold no key, since nothing would tell them whether the others
	// gained by it.
	OnlySuspect bool
	// OnVerdict is called with each decision, before it is published. Nil disables it.
	OnVerdict func(Verdict)
	// OnTops receives the keys that count most, once a second: see [Tops]. It must not block. Nil
	// disables it.
	OnTops func([]Tops)
	// Explain is a key for which OnAccount is called at the end of each pane. A nil OnAccount
	// disables it.
	Explain   rules.Key
	OnAccount func(Account)
}

// defaultRateSpan evens out counts that arrive in flushes, and is short enough for a rate to
// fall to zero soon after the last request.
const defaultRateSpan = time.Second

// Detector finds the hot keys. Thresholds on counts and jumps are evaluated on every count.
// Those on shares and ranks are evaluated when a pane ended more than the lag ago, as counts of
// other keys may still arrive until then. A key cools when its highest possible count in a
// whole window has been below the exit for the cool-down, and the key has been hot for the
// hold. A Detector must not be used by several goroutines at a time.
type Detector struct {
	cfg       DetectorConfig
	numbered  *decode.Numbered
	now       time.Time    // latest instant that it was advanced to
	rules     []*ruleWatch // by rule number; nil without a threshold, or in another part
	watches   []*ruleWatch // elements of rules that are not nil
	suspects  suspects
	near      near
	missing   *window.Missing
	keep      time.Duration // time for which missing packets matter
	account   *accountant   // nil if no key is explained
	former    []former      // rules from before the newest reloads
	noRoom    int64         // see DetectorStats.NoRoom
	refreshed bool          // whether the last refresh published keys
	ahead     ahead
	costs     costs

	counted  int       // number of rules that are counted by the hour
	hour     int64     // newest recorded hour
	recorded time.Time // instant up to which it was recorded
}

// NewDetector returns a detector without any counts.
func NewDetector(c DetectorConfig) *Detector {
	if c.Memory == 0 {
		c.Memory = DefaultMemory
	}
	if c.Grace == 0 {
		c.Grace = decode.DefaultGrace
	}
	if c.RateSpan == 0 {
		c.RateSpan = defaultRateSpan
	}
	c.Parts = max(1, c.Parts)
	d := &Detector{cfg: c, costs: costs{standby: standbyOf(c.Publisher), onlySuspect: c.OnlySuspect, records: c.OnTops != nil}, suspects: suspects{part: c.Part}, missing: window.NewMissing()}
	d.setRules(decode.NumberRules(c.Rules), c.Homes, newRuleWatch)
	if !c.Start.IsZero() {
		d.beginWindows(c.Start)
	}
	if c.OnAccount != nil {
		d.account = &accountant{key: c.Explain, onAccount: c.OnAccount}
	}
	return d
}

// standbyOf returns a function that reports whether another process publishes in place of p, or nil
// if p cannot tell.
func standbyOf(p Publisher) func() bool {
	if p, tells := p.(interface{ Standby() bool }); tells {
		return p.Standby
	}
	return nil
}

// beginWindows records that the counts from before start are unknown.
func (d *Detector) beginWindows(start time.Time) {
	for v := range d.views() {
		v.beginWindows(nil, start, start.Add(-d.cfg.Lag))
		v.sinceStart = true
	}
}

// views yields the views of all rules.
func (d *Detector) views() iter.Seq[*view] {
	return func(yield func(*view) bool) {
		for _, r := range d.watches {
			for _, v := range r.views {
				if !yield(v) {
					return
				}
			}
		}
	}
}

// rulePlace is what a detector provides for a rule that it counts.
type rulePlace struct {
	number int
	rule   *rules.Rule
	budget int64         // memory in bytes
	late   time.Duration // by how much a count may be older than a window
	days   *baseline.Days
}

// setRules sets the watch of each rule that belongs to this part, to the result of watch. It returns
// the keys that were hot by the cost of a rule that no longer does.
func (d *Detector) setRules(n *decode.Numbered, all []int, watch func(rulePlace) *ruleWatch) (gone []published.Hot) {
	rules := n.ByNumber().OfKeys()
	if all == nil {
		all = homes(rules, d.cfg.Parts)
	}
	gone = d.costs.setRules(n, func(number int) bool { return all[number] == d.cfg.Part })
	d.numbered, d.cfg.Homes = n, all
	d.rules, d.watches, d.counted = make([]*ruleWatch, len(rules.Rules)), nil, 0
	d.keep = decode.Lookback(rules) + d.cfg.Grace + d.cfg.Lag + time.Second
	for i := range rules.Rules {
		budget := d.cfg.Memory / max(1, int64(n.Len()))
		switch {
		case !n.Has(i):
			continue
		case all[i] < 0:
			budget /= int64(d.cfg.Parts)
		case all[i] != d.cfg.Part:
			continue
		}
		if rules.Rules[i].HasCost() {
			continue // see costs
		}
		r := watch(rulePlace{i, &rules.Rules[i], budget, max(d.cfg.Grace, d.cfg.Lag), d.cfg.Days})
		d.rules[i], d.watches = r, append(d.watches, r)
		if r.hours != nil {
			d.counted++
		}
		for _, v := range r.views {
			for w := range v.windows() {
				w.SetMissing(d.missing, i)
			}
		}
	}
	d.suspects.share = maxSuspects / max(1, len(d.watches))
	return gone
}

func (d *Detector) publish(change published.Change) {
	if !change.Empty() {
		d.cfg.Publisher.Publish(change)
	}
}

// report passes v, a decision by the window that ends with a pane, to OnVerdict.
func (d *Detector) report(w *watched, t *threshold, v Verdict, pane int64) {
	if d.cfg.OnVerdict == nil {
		return
	}
	v.Key = rules.Key{Rule: w.rule.rule.ID, Text: w.text}
	v.Threshold = t.Threshold
	v.Hold = w.marks[t.number].hold
	low, high := w.bounds(t.view, pane)
	v.Low, v.High = max(v.Low, low), high
	d.cfg.OnVerdict(v)
}

// Bounds of an aggregator's memory, in bytes.
const (
	// MinMemory is the smallest memory that windows can work with.
	MinMemory     = 1 << 20
	DefaultMemory = 64 << 20
	// The accounts of keys have one accountsPart-th of the memory.
	accountsPart = 8
)

// SplitMemory divides the memory of an aggregator, in bytes, between its windows and the
// accounts of keys, by which lost counts are recovered.
func SplitMemory(bytes int64) (windows, accounts int64) {
	return bytes - bytes/accountsPart, bytes / accountsPart
}
