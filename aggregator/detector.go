package aggregator

import (
	"time"

	"github.com/hotparam/hotparam/aggregator/internal/window"
	"github.com/hotparam/hotparam/internal/baseline"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/rules"
)

// Publisher receives the results of the detector. Its methods are called from several
// goroutines. They must neither block nor keep the slices.
type Publisher interface {
	// Publish publishes a change of the hot set.
	Publish(rules.Change)
	// Refresh receives the current counts of all hot keys of one part. A key that the publisher
	// had no room for gets another chance.
	Refresh(part int, hot []rules.Hot)
	// Suspects receives all keys of one part that may be hot. They replace those that the part
	// reported before.
	Suspects(part int, suspects []rules.Hot)
	// Instances receives the live instances, each with the arrival of its last packet.
	Instances([]rules.Instance)
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
	// OnVerdict is called with each decision, before it is published. Nil disables it.
	OnVerdict func(Verdict)
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
	publisher Publisher
	now       time.Time    // latest instant that it was advanced to
	rules     []*ruleWatch // by rule number; nil without a threshold, or in another part
	watches   []*ruleWatch // elements of rules that are not nil
	lag       time.Duration
	rateSpan  time.Duration
	suspects  suspects
	missing   *window.Missing
	keep      time.Duration // time for which missing packets matter
	onVerdict func(Verdict)
	account   *accountant // nil if no key is explained
	former    []former    // rules from before the newest reloads
	unnamed   int64
	refreshed bool // whether the last refresh published keys
	ahead     ahead

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
	d := &Detector{
		numbered: decode.NumberRules(c.Rules), publisher: c.Publisher, lag: c.Lag, rateSpan: c.RateSpan, onVerdict: c.OnVerdict,
		suspects: suspects{part: c.Part}, missing: window.NewMissing(),
	}
	d.cfg = c
	d.setRules(d.numbered, c.Homes, func(p place) *ruleWatch { return newRuleWatch(p.number, p.rule, c.Days, p.budget, d.late()) })
	if !c.Start.IsZero() {
		d.beginWindows(c.Start)
	}
	if c.OnAccount != nil {
		d.account = &accountant{key: c.Explain, onAccount: c.OnAccount}
	}
	return d
}

// beginWindows records that the counts from before start are unknown.
func (d *Detector) beginWindows(start time.Time) {
	for _, r := range d.watches {
		for _, v := range r.views {
			v.beginWindows(nil, start, start.Add(-d.lag))
			v.sinceStart = true
		}
	}
}

// place is a rule that a detector counts.
type place struct {
	number int
	rule   *rules.Rule
	budget int64 // memory in bytes
}

// setRules sets the watch of each rule that belongs to this part, to the result of watch.
func (d *Detector) setRules(n *decode.Numbered, all []int, watch func(place) *ruleWatch) {
	rules := n.ByNumber().OfKeys()
	if all == nil {
		all = homes(rules, d.cfg.Parts)
	}
	hot := int64(0)
	for i := range rules.Rules {
		if n.Has(i) {
			hot++
		}
	}
	d.numbered, d.cfg.Homes = n, all
	d.rules, d.watches = make([]*ruleWatch, len(rules.Rules)), nil
	d.keep = decode.Lookback(rules) + d.cfg.Grace + d.lag + time.Second
	for i := range rules.Rules {
		budget := d.cfg.Memory / max(1, hot)
		switch {
		case !n.Has(i):
			continue
		case all[i] < 0:
			budget /= int64(d.cfg.Parts)
		case all[i] != d.cfg.Part:
			continue
		}
		r := watch(place{i, &rules.Rules[i], budget})
		d.rules[i], d.watches = r, append(d.watches, r)
		for _, v := range r.views {
			v.Window.SetMissing(d.missing, i)
			if v.history != nil {
				v.history.SetMissing(d.missing, i)
			}
		}
	}
	d.counted = 0
	for _, r := range d.watches {
		if r.hours != nil {
			d.counted++
		}
	}
	d.suspects.share = maxSuspects / max(1, len(d.watches))
}

// late returns by how much a count may be older than a window.
func (d *Detector) late() time.Duration { return max(d.cfg.Grace, d.lag) }

func (d *Detector) publish(change rules.Change) {
	if !change.Empty() {
		d.publisher.Publish(change)
	}
}

// report passes v, a decision by the window that ends with a pane, to OnVerdict.
func (d *Detector) report(w *watched, t *threshold, v Verdict, pane int64) {
	if d.onVerdict == nil {
		return
	}
	v.Key = rules.Key{Rule: w.rule.rule.ID, Text: w.text}
	v.Threshold = t.Threshold
	v.Hold = w.marks[t.number].hold
	low, high := w.bounds(t.view, pane)
	v.Low, v.High = max(v.Low, low), high
	d.onVerdict(v)
}
