package aggregator

import (
	"iter"
	"slices"
	"time"

	"github.com/hotparam/hotparam/aggregator/internal/window"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// settleTime is the time after a rule starts to count differently, in another unit or by other
// parameters, before its counts are used. Instances that have not read the rules yet send the
// former counts under the same name.
const settleTime = 2 * time.Second

// Reload puts other rules in force, numbered as [decode.Numbered.Next] numbers them after the
// current ones. Homes is as in [DetectorConfig].
//
// A rule that counts the same in the same part keeps its windows of each length that it still
// has, with all their counts. The counts of other windows before now are unknown, so they have
// no high count until they hold none of that time. A hot key stays hot until the new thresholds
// decide otherwise. If none of them is like one that held it, all of them hold it until they
// know. Keys of removed rules cool now, and so do keys with a value that is allowed now. Listed
// keys whose limit or threshold changed are published at once.
//
// Reload returns the listed keys of rules that still exist, and that this detector no longer
// counts, or counts from zero. [Detector.TakeOver] keeps them hot in the detector that counts
// them.
func (d *Detector) Reload(n *decode.Numbered, homes []int, now time.Time) (left []published.Hot) {
	x := reload{d: d, n: n, was: d.numbered, before: d.rules, homes: d.cfg.Homes, now: d.latest(now)}
	x.dropSuspects()
	x.describe()
	x.addFormer()
	x.addCostly(d.setRules(n, homes, x.newWatch))
	for number, r := range x.before {
		if r != nil && (number >= len(d.rules) || d.rules[number] == nil || !x.continues(number)) {
			x.endWatch(r)
		}
	}
	d.missing.Forget(func(number int) bool { return number >= len(d.rules) || d.rules[number] == nil || !x.continues(number) })
	d.suspects.scanned = time.Time{}
	d.publish(published.Change{Hot: x.changed(), Cool: x.cool})
	return x.left
}

// TakeOver makes keys hot that another detector has left at a reload, and publishes them. Keys
// that it refuses, as [Detector.Adopt] does, cool.
func (d *Detector) TakeOver(left []published.Hot, now time.Time) {
	d.takeOver(left, now, (*watched).presentAfter)
}

// Inherit is like [Detector.TakeOver] for keys that another process has published. Its counts
// since then are unknown, so the bounds are those of this detector's own counts.
func (d *Detector) Inherit(hot []published.Hot, now time.Time) {
	d.takeOver(hot, now, (*watched).presentSince)
	for v := range d.views() {
		v.saved = nil
	}
}

func (d *Detector) takeOver(left []published.Hot, now time.Time, present func(*watched, *published.Hot) published.Hot) {
	now = d.latest(now)
	change := published.Change{Cool: d.Adopt(left, now)}
	for i := range change.Cool {
		change.Cool[i].Until = now
	}
	for _, h := range left {
		if x := d.costs.find(h.Key); x != nil {
			change.Hot = append(change.Hot, x.present())
		}
		if r := d.rule(h.Rule); r != nil {
			if w := r.keys[h.Text]; w != nil && w.listed {
				change.Hot = append(change.Hot, present(w, &h))
			}
		}
	}
	d.publish(change)
}

// presentAfter returns the key with its current counts. If its counts elsewhere before were
// higher, and of the same window and unit, it returns those.
func (w *watched) presentAfter(before *published.Hot) published.Hot {
	h := w.describeNow()
	if before.Low > h.Low && before.Cause.Rate.Per == h.Cause.Rate.Per && before.Cause.Unit == h.Cause.Unit {
		h.Low, h.High, h.Rate, h.Ratio, h.Top = before.Low, before.High, before.Rate, before.Ratio, before.Top
	}
	return h
}

// presentSince returns the key with its current counts. If its rate and its origins are not
// known here yet, it returns the published ones.
func (w *watched) presentSince(known *published.Hot) published.Hot {
	h := w.describeNow()
	h.Rate = max(h.Rate, known.Rate)
	if h.Top == nil {
		h.Top = known.Top
	}
	return h
}

// listed yields the keys that are hot and listed.
func (d *Detector) listed() iter.Seq[*watched] {
	return func(yield func(*watched) bool) {
		for _, r := range d.watches {
			for _, w := range r.hot {
				if w.listed && !yield(w) {
					return
				}
			}
		}
	}
}

// Listed returns the keys that are hot and listed, with their current counts.
func (d *Detector) Listed() (hot []published.Hot) {
	for w := range d.listed() {
		hot = append(hot, w.describeNow())
	}
	return append(hot, d.costs.listed()...)
}

// latest returns now, or a later instant if a count of a later one may have been counted.
func (d *Detector) latest(now time.Time) time.Time {
	now = base.Later(now, d.now)
	for v := range d.views() {
		if v.newest > v.Index(now) {
			now = v.Start(v.newest + 1).Add(-1)
		}
	}
	return now
}

// reload is the state of one [Detector.Reload].
type reload struct {
	d      *Detector
	n, was *decode.Numbered
	before []*ruleWatch // watches before, by number
	homes  []int        // homes before
	now    time.Time
	states map[*watched]published.Hot // listed keys with their previous state
	left   []published.Hot
	cool   []published.Hot
}

// dropSuspects empties the list of suspects, which the next scan fills again.
func (x *reload) dropSuspects() {
	for _, w := range x.d.suspects.clear() {
		w.suspected = time.Time{}
		w.release()
	}
}

// describe records the state of the listed keys.
func (x *reload) describe() {
	x.states = make(map[*watched]published.Hot)
	for w := range x.d.listed() {
		x.states[w] = w.describeNow()
	}
}

// continues reports whether the rule with a number was counted by this detector, and is counted
// in the same way.
func (x *reload) continues(number int) bool {
	return number < len(x.before) && x.before[number] != nil && x.n.Has(number) && x.homes[number] == x.d.cfg.Homes[number]
}

// addCostly adds the keys that are hot by the cost of a rule that this detector no longer has.
func (x *reload) addCostly(gone []published.Hot) {
	for _, h := range gone {
		if number := x.n.NumberOf(h.Rule); number >= 0 && x.n.ByNumber().Rules[number].HasCost() && x.d.cfg.Homes[number] != x.d.cfg.Part {
			x.left = append(x.left, h)
			continue
		}
		h.Until, h.Released = x.now, "the rules have changed"
		x.cool = append(x.cool, h)
	}
}

// changed returns the listed keys that are published with other terms than before.
func (x *reload) changed() (hot []published.Hot) {
	for w := range x.d.listed() {
		h, was := w.describeNow(), x.states[w]
		if h.Limit != was.Limit || h.Burst != was.Burst || h.Mode != was.Mode || h.Scope != was.Scope || h.Cause != was.Cause {
			hot = append(hot, h)
		}
	}
	return hot
}

// newWatch returns the watch of a rule.
func (x *reload) newWatch(p rulePlace) *ruleWatch {
	r := layOut(p.number, p.rule)
	var before *ruleWatch
	if x.continues(p.number) {
		before = x.before[p.number]
		r.complete, r.from = before.complete, before.from
	} else {
		r.from = x.d.settled(p.rule, x.n.InOrder().Namespace, x.now)
	}
	r.open(p, before)
	for _, v := range r.views {
		v.beginWindows(before.viewLike(v), base.Later(x.now, r.from), x.now.Add(-x.d.cfg.Lag))
	}
	if before != nil {
		x.keepHot(before, r)
	}
	return r
}

// former is a removed or changed rule, whose counts may still arrive.
type former struct {
	rule  rules.Rule
	name  string // name of its counts
	until time.Time
}

// addFormer records the rules that were removed, or that now count differently.
func (x *reload) addFormer() {
	d := x.d
	d.former = slices.DeleteFunc(d.former, func(f former) bool { return !f.until.After(x.now) })
	rules := x.was.ByNumber()
	for number := range rules.Rules {
		if rule := &rules.Rules[number]; x.was.Has(number) && !x.n.Has(number) {
			d.former = append(d.former, former{*rule, rule.CountPrefix(rules.Namespace), x.now.Add(settleTime)})
		}
	}
}

// settled returns the time from which on all counts under a rule's name are its own. It returns
// the zero time if no former rule has that name.
func (d *Detector) settled(rule *rules.Rule, namespace string, now time.Time) (from time.Time) {
	for i := range d.former {
		f := &d.former[i]
		if f.name == rule.CountPrefix(namespace) && (f.rule.Count != rule.Count || !f.rule.SameKeys(rule)) {
			from = base.Later(from, f.until)
		}
	}
	return from
}

// beginWindows records that the counts of v up to now are unknown, except in the parts that v
// continues from before. A nil before has no parts. All counts from before over have arrived.
func (v *view) beginWindows(before *view, now, over time.Time) {
	pane := v.Index(now)
	if before == nil {
		v.Advance(v.Index(over))
		v.BeginAfter(pane)
		v.began, v.newest, v.closed = pane+1, v.Index(over), v.Index(over)-1
	}
	switch {
	case v.history == nil:
	case before == nil:
		v.history.Start(pane)
	case before.history == nil:
		v.history.BeginAt(pane + 1)
	}
	if v.groups != nil && before != nil && before.groups == nil {
		v.groups.BeginAfter(pane)
	}
	if v.totals != nil && (before == nil || before.totals == nil) {
		v.totals.BeginAfter(pane)
	}
}

// latest returns the newest pane that is or may be counted.
func (v *view) latest() int64 { return max(v.Now(), v.newest) }

// continueFrom continues the windows of a view that has the same panes.
func (v *view) continueFrom(before *view) {
	v.Window = before.Window
	if v.has(rules.Jump) {
		v.history = before.history
	}
	if v.has(rules.Share) {
		v.groups = before.groups
	}
	v.totals = before.totals
	v.bound, v.began, v.newest, v.closed, v.lastToJudge, v.sinceStart = before.bound, before.began, before.newest, before.closed, before.lastToJudge, before.sinceStart
	v.was = before
}

// resize changes the budget of a view's window.
func (v *view) resize(budget int64) {
	number := v.was.number
	for _, w := range v.was.watch.hot {
		w.entries[number] = -1
	}
	v.Window = v.Window.Resize(budget, func(t *window.Tag, i int32) { t.Owner.(*watched).entries[number] = i })
	v.was.Window = nil // so that both windows are not in memory together
}
