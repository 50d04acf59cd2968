package aggregator

import (
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
	if v.repeats != nil {
		v.repeats.Add(c.Text, pane, c.N)
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
	if v.compares {
		v.compare(c, pane)
	}
	switch {
	case i < 0:
		if v.bound >= v.least {
			d.judgeUncounted(v, c)
		}
	case low >= v.level || v.pinned > 0 && v.watched(i) != nil:
		d.judgeCount(v, c, standing{i, low, end})
	}
}

// compare adds c to the counts that keys are compared with.
func (v *view) compare(c *decode.Count, pane int64) {
	if v.history != nil {
		v.history.Count(c)
	}
	if v.groups != nil {
		v.groups.Add(c.Text, pane, c.N, c.InGroup)
	}
}
