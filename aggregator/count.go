package aggregator

import (
	"github.com/hotparam/hotparam/aggregator/internal/window"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
)

// Count implements [decode.Handler].
func (d *Detector) Count(c decode.Count) { d.count(&c) }

// count adds c to each window of its rule.
func (d *Detector) count(c *decode.Count) {
	r := d.rules[c.Rule]
	if r == nil || !r.from.IsZero() && c.When.Before(r.from) {
		return
	}
	if c.Skew != 0 {
		r.skew.add(c)
	}
	isAgain := (r.shares || r.overlaps) && base.IsAgain(c.Text)
	isTotal := r.overlaps && base.IsTotal(c.Text)
	if d.account != nil && !isAgain && !isTotal {
		d.account.recordCount(r, c)
	}
	if !isAgain && !isTotal {
		r.hours.count(c)
	}
	for _, v := range r.views {
		pane := v.PaneOf(c.When)
		switch {
		case isAgain:
			v.takeOff(c, pane)
		case isTotal:
			v.totals.Add(c.Text, pane, c.N)
		default:
			d.countKey(v, c, pane)
		}
	}
}

// takeOff subtracts requests that several counts of a group share from the totals that the
// group's keys are compared with.
func (v *view) takeOff(c *decode.Count, pane int64) {
	if v.groups != nil {
		v.groups.TakeOffCount(c.Text, pane, c.N, c.InGroup)
	}
	if v.totals != nil {
		v.totals.AddRepeats(c.Text, pane, c.N)
	}
}

// countKey adds c to a pane of v. It judges the key if its count is near a threshold, or if the
// key is hot or suspect.
func (d *Detector) countKey(v *view, c *decode.Count, pane int64) {
	v.newest = max(v.newest, pane)
	i, low, end := v.Add(c.Hash, c.Text, pane, c.N)
	if c.Estimated && i >= 0 {
		v.AddGuess(i, pane, c.N-c.Seen)
		i = v.Find(c.Hash, c.Text)
	}
	if v.history != nil {
		v.history.Count(c)
	}
	if v.groups != nil {
		v.groups.Add(c.Text, pane, c.N, c.InGroup)
	}
	switch {
	case i < 0:
		if v.bound >= v.least {
			d.judgeUncounted(v, c)
		}
	case low >= v.level || v.pinned > 0 && v.watched(i) != nil:
		d.judgeCount(v, c, windowState{i, low, end})
	case d.near.left > 0:
		d.near.compare(v, c, i)
	}
}

const (
	// fetchAhead is the number of counts that are looked up in memory before they are counted.
	// With a million keys that is twice as fast.
	fetchAhead = 120
	// fetchFrom is the number of units from which on a window always gains from reading ahead.
	// Smaller windows stay in the processor's caches if the process does nothing but counting.
	// In a shard, whose packets come from the kernel, reading ahead always pays.
	fetchFrom = 1 << 18
)

// ahead collects the hashes of counts of one rule, to read ahead for all of them.
type ahead struct {
	hashes [fetchAhead]uint64
	n      int
	rule   int
}

// at most as many as a window reads ahead for
var _ [window.FetchMost - fetchAhead]struct{}

// plan adds a count to those that are read ahead for.
func (d *Detector) plan(rule int, hash uint64, from int) {
	a := &d.ahead
	if rule != a.rule || a.n == fetchAhead {
		d.fetch(from)
		a.rule = rule
	}
	a.hashes[a.n] = hash
	a.n++
}

// fetch reads the memory that the planned counts are about to use, in windows with at least
// from units.
func (d *Detector) fetch(from int) {
	a := &d.ahead
	if a.n == 0 {
		return
	}
	if r := d.rules[a.rule]; r != nil {
		for _, v := range r.views {
			v.Fetch(a.hashes[:a.n], from)
		}
	}
	a.n = 0
}

// fetchBatch reads the memory that counts of a batch are about to use.
func (d *Detector) fetchBatch(counts []batchCount) {
	for i := range counts {
		d.plan(int(counts[i].rule), counts[i].hash, 0)
	}
	d.fetch(0)
}

// Counts counts the counts of a packet.
func (d *Detector) Counts(counts []decode.Count) {
	for len(counts) > 0 {
		n := min(len(counts), fetchAhead)
		for i := range counts[:n] {
			d.plan(counts[i].Rule, counts[i].Hash, fetchFrom)
		}
		d.fetch(fetchFrom)
		for i := range counts[:n] {
			d.count(&counts[i])
		}
		counts = counts[n:]
	}
}
