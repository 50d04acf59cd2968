package aggregator

import (
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/ring"
	"github.com/hotparam/hotparam/rules"
)

// Advance moves the clock on to now. It closes the panes that ended more than the lag ago,
// cools the keys that are no longer hot, and reports suspects.
func (d *Detector) Advance(now time.Time) { d.AdvanceTo(now, now.Add(-d.cfg.Lag)) }

// AdvanceTo is like [Detector.Advance] for a caller that knows that all counts from before
// complete have arrived.
func (d *Detector) AdvanceTo(now, complete time.Time) {
	d.now = base.Later(d.now, now)
	for _, r := range d.watches {
		for _, v := range r.views {
			if v.isSetBack(now) {
				d.restart(v, now)
			}
		}
		d.moveTo(r, now, complete)
	}
	d.advanceHours(complete)
	d.watchSuspects(now)
	d.tellSummary(now)
	d.missing.Sweep(now, d.keep)
	d.publish(d.costs.advance(now))
}

// moveTo moves the windows of a rule to now and closes the panes that ended before complete.
// Where a pane can change a key's state they move pane by pane, even after a long silence,
// because a window drops counts older than the grace, which a pane that is still open may need.
func (d *Detector) moveTo(r *ruleWatch, now, complete time.Time) {
	r.complete = complete
	ahead := now.Sub(complete)
	for {
		step := complete
		for _, v := range r.views {
			if v.closed == ring.Never || v.isIdle() {
				continue
			}
			if next := v.Start(v.closed + 2); next.Before(step) {
				step = next
			}
		}
		for _, v := range r.views {
			when := step.Add(ahead)
			v.Advance(v.Index(when))
			if v.began == ring.Never {
				v.began = v.Index(when) + 1
			}
			if v.history != nil {
				v.history.AdvanceTo(when, v.Index(when))
			}
		}
		d.closePanes(r, step)
		if !step.Before(complete) {
			return
		}
	}
}

// closePanes closes the panes of a rule that ended before complete, in the order in which they
// ended.
func (d *Detector) closePanes(r *ruleWatch, complete time.Time) {
	for {
		var next *view
		for _, v := range r.views {
			over := v.Index(complete) - 1
			if v.closed == ring.Never || v.isIdle() {
				v.closed = max(v.closed, over)
			}
			v.passOver(over)
			if v.closed < over && (next == nil || v.Start(v.closed+2).Before(next.Start(next.closed+2))) {
				next = v
			}
		}
		if next == nil {
			return
		}
		next.closed++
		d.closePane(next, next.closed)
	}
}

// passOver skips panes whose window is no longer kept whole, because much later counts arrived
// before them. A window that cannot be evaluated cools no key.
func (v *view) passOver(over int64) {
	kept := min(over, v.Now()-v.Kept()+int64(v.Panes)-1) // newest pane whose window is no longer kept whole
	if v.Now() == ring.Never || v.closed >= kept {
		return
	}
	v.closed = kept
	for _, w := range v.watch.hot {
		for _, t := range v.thresholds {
			w.marks[t.number].below = time.Time{}
		}
	}
}

// isIdle reports whether closing the next pane can change nothing, and is not to be reported.
func (v *view) isIdle() bool {
	isExplained := v.explained.counted && v.closed < v.explained.due
	return v.marked == 0 && (!v.judgesAtEnd() || v.closed >= v.lastToJudge) && !isExplained
}

// restart empties a view after the clock was set back by more than a window, or forward.
// Otherwise all counts would be late until the clock is where it was. Hot keys stay hot, as
// after a restart of the process, until windows that were seen whole by this clock cool them.
func (d *Detector) restart(v *view, now time.Time) {
	r := v.watch
	d.now = now
	for _, w := range r.keys {
		if w.suspect != nil && w.suspect.view == v {
			d.suspects.drop(w)
		}
		w.unpin(v)
		w.release()
	}
	v.restart()
	v.beginWindows(nil, now, now.Add(-d.cfg.Lag))
	var cool []published.Hot
	for _, w := range r.hot {
		if !w.rehold(v, now) {
			d.noRoom++
			for _, t := range v.thresholds {
				w.setMark(t, thresholdState{})
			}
			if w.hotMarks == 0 && w.listed {
				cool, w.listed = append(cool, published.Hot{Key: rules.Key{Rule: r.rule.ID, Text: w.text}, Until: now}), false
			}
		}
		w.since, w.hotSince = base.Earlier(w.since, now), base.Earlier(w.hotSince, now)
		w.meter, w.origins, w.habit.windows = newMeter(d.cfg.RateSpan, now), nil, [len(w.windows)]habitWindow{}
	}
	d.publish(published.Change{Cool: append(cool, r.takeCooled(v.closed, now)...)})
}

// rehold renews the marks of the thresholds that hold w hot in an emptied view, as of now. It
// reports false if there is no room for the key.
func (w *watched) rehold(v *view, now time.Time) bool {
	if !w.addEntry(v, v.PaneOf(now)) {
		return false
	}
	for _, t := range v.thresholds {
		if m := w.marks[t.number]; m.hot {
			w.setMark(t, thresholdState{hot: true, need: m.need, adoptedRatio: max(1, m.adoptedRatio), over: v.Start(v.PaneOf(now) + 1), hold: base.Earlier(m.hold, now.Add(t.Hold))})
		}
	}
	return true
}

// Refresh publishes the current counts of the hot keys, and frees memory that is no longer
// needed.
func (d *Detector) Refresh() {
	d.recordTops()
	hot := d.Listed()
	for v := range d.views() {
		v.tidyUp()
	}
	for _, r := range d.watches {
		if r.hours != nil {
			r.hours.Tidy()
		}
	}
	if len(hot) > 0 || d.refreshed {
		d.cfg.Publisher.Refresh(d.suspects.part, hot)
	}
	d.refreshed = len(hot) > 0
}

// wallClock detects that the system's clock was set forward, by comparison with the monotonic
// one.
type wallClock struct{ last time.Time }

// leastSet is the smallest step that is detected. Smaller steps occur when a clock is kept
// right.
const leastSet = time.Second

// forwardStep returns by how much the clock was set forward since the last call, or 0. now is a
// result of [time.Now].
func (c *wallClock) forwardStep(now time.Time) (step time.Duration) {
	if !c.last.IsZero() {
		step = now.Round(0).Sub(c.last.Round(0)) - now.Sub(c.last)
	}
	c.last = now
	if step < leastSet {
		return 0
	}
	return step
}

// restartShort restarts the views whose windows are at most four times as long as the step. Their
// counts would be old at once, and all hot keys would cool. After a smaller step a window ends
// with the counts that it has.
func (d *Detector) restartShort(now time.Time, step time.Duration) {
	for v := range d.views() {
		if 4*step >= time.Duration(v.Panes)*v.Pane {
			d.restart(v, now)
		}
	}
}
