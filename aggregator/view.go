package aggregator

import (
	"iter"
	"slices"
	"time"

	"github.com/hotparam/hotparam/aggregator/internal/window"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/ring"
	"github.com/hotparam/hotparam/rules"
)

func newRuleWatch(p rulePlace) *ruleWatch {
	r := layOut(p.number, p.rule)
	r.open(p, nil)
	return r
}

// layOut returns a watch of a rule, with one view for each distinct window of its thresholds. The
// views are not open yet.
func layOut(number int, rule *rules.Rule) *ruleWatch {
	r := &ruleWatch{rule: rule, number: number, keys: make(map[string]*watched), combines: rule.By.Kind == rules.ByCombinations, overlaps: rule.Overlaps()}
	if r.combines {
		r.levels = levelsOf(rule)
	}
	for i := range rule.Hot {
		t := &threshold{Threshold: &rule.Hot[i], rule: rule, number: i}
		window := t.Window()
		j := slices.IndexFunc(r.views, func(v *view) bool { return v.thresholds[0].Window() == window })
		if j < 0 {
			j = len(r.views)
			r.views = append(r.views, &view{watch: r, number: j})
		}
		t.view = r.views[j]
		t.view.thresholds = append(t.view.thresholds, t)
		r.thresholds = append(r.thresholds, t)
	}
	return r
}

// open opens the views, and divides the budget of p among them. A view continues the one of before
// that has the same window. A nil before has none.
func (r *ruleWatch) open(p rulePlace, before *ruleWatch) {
	parts := int64(len(r.views)) // one part for each view and each history
	for _, v := range r.views {
		if v.has(rules.Jump) {
			parts++
		}
	}
	least := leastHourly(r.rule)
	if least > 0 && p.days != nil {
		parts++
	}
	p.budget /= parts
	if least > 0 && p.days != nil {
		r.hours = hoursOf(p, least, before)
	}
	longest := time.Duration(0)
	for _, v := range r.views {
		v.open(p, before.viewLike(v))
		r.shares = r.shares || v.groups != nil
		longest = max(longest, v.thresholds[0].Rate.Per)
	}
	r.skew.span = max(longest, minSkewSpan)
	if before != nil {
		r.skew.from, r.skew.current, r.skew.previous = before.skew.from, before.skew.current, before.skew.previous
	}
	for _, v := range r.views {
		if v.history != nil {
			v.history.Longest = v.thresholds[0].Rate.Per == longest
		}
	}
}

// viewLike returns the view that has the same window as v, or nil. A nil r has no views.
func (r *ruleWatch) viewLike(v *view) *view {
	if r == nil {
		return nil
	}
	for _, u := range r.views {
		if u.thresholds[0].Window() == v.thresholds[0].Window() {
			return u
		}
	}
	return nil
}

// judgesAtEnd reports whether keys that no threshold holds hot are judged when a pane has
// ended.
func (v *view) judgesAtEnd() bool { return v.ranks || v.history != nil && v.Held() > 0 }

func (v *view) has(kind rules.ThresholdKind) bool {
	return slices.ContainsFunc(v.thresholds, func(t *threshold) bool { return t.Kind == kind })
}

// groupsPart and totalsPart are the parts of a view's budget for groups, and for totals and repeats.
const groupsPart, totalsPart = 8, 32

// open creates the windows of a view, or continues those of before if it is not nil.
func (v *view) open(p rulePlace, before *view) {
	if before != nil {
		v.continueFrom(before)
	} else {
		v.began, v.newest, v.closed, v.lastToJudge = ring.Never, ring.Never, ring.Never, ring.Never
	}
	w := v.thresholds[0].Window()
	// A window is judged when a lag has passed since its end. The pane of that time is not in it,
	// hence one more.
	grace, budget := int64((p.late+w.Pane-1)/w.Pane)+1, p.budget
	switch {
	case v.has(rules.Jump) && v.history == nil:
		v.history = window.NewHistory(w, grace, budget)
	case v.history != nil && v.history.Budget() != budget:
		v.history = v.history.Resize(budget)
	}
	if v.has(rules.Share) {
		if v.groups == nil {
			v.groups = window.NewGroups(int64(w.Panes)+grace, budget/groupsPart, v.thresholds[0].rule.ParamsOnly)
		} else {
			v.groups.Resize(budget/groupsPart, v.latest())
		}
		budget -= budget / groupsPart
	}
	if v.thresholds[0].rule.Overlaps() {
		if v.totals == nil {
			v.totals = window.NewTotals(int64(w.Panes)+grace, budget/totalsPart)
		} else {
			v.totals.Resize(budget/totalsPart, v.latest())
		}
		budget -= budget / totalsPart
	}
	switch {
	case v.Window == nil:
		v.Window = window.New(w, grace, budget)
	case v.Budget() != budget:
		v.resize(budget)
	}
	v.ranks = v.groups != nil || v.has(rules.Top)
	v.least = v.thresholds[0].leastCount()
	for _, t := range v.thresholds {
		v.least = min(v.least, t.leastCount())
	}
	v.setHidden(v.bound)
}

// restart empties the view.
func (v *view) restart() {
	v.Window = v.Window.Restart()
	if v.history != nil {
		v.history = v.history.Restart()
	}
	if v.groups != nil {
		v.groups = v.groups.Restart()
	}
	if v.totals != nil {
		v.totals = v.totals.Restart()
	}
	v.began, v.newest, v.closed, v.lastToJudge = ring.Never, ring.Never, ring.Never, ring.Never
	v.sinceStart = false
	v.setHidden(0)
}

// isSetBack reports whether the clock was set back by more than the time that is kept.
func (v *view) isSetBack(now time.Time) bool {
	return v.Now() != ring.Never && v.Index(now) <= v.Now()-v.Kept()
}

// setHidden sets the upper bound of a key's hidden counts. A key is judged, and may be a suspect,
// from that much below the least count.
func (v *view) setHidden(bound int64) {
	v.bound = bound
	v.level = max(1, v.least-bound)
	v.NameFrom(v.level)
}

// stopSuspecting ends the search for suspects while their list is full. Keys are judged from the
// least count on, and have a text from lowest on.
func (v *view) stopSuspecting(lowest int64) {
	v.level = v.least
	v.NameFrom(max(1, min(v.least, lowest)))
}

// windows yields the window of the view and, if it has one, that of its history.
func (v *view) windows() iter.Seq[*window.Window] {
	return func(yield func(*window.Window) bool) {
		if yield(v.Window) && v.history != nil {
			yield(v.history.Window)
		}
	}
}

func (v *view) memory() (used int64) {
	for w := range v.windows() {
		used += w.Used()
	}
	if v.groups != nil {
		used += v.groups.Used()
	}
	if v.totals != nil {
		used += v.totals.Used()
	}
	return used
}

func (v *view) tidyUp() {
	for w := range v.windows() {
		w.Tidy()
	}
	if v.groups != nil {
		v.groups.Sweep(v.Now())
	}
	if v.totals != nil {
		v.totals.Sweep(v.Now())
	}
}

// canSubtract reports whether a healed count can be subtracted from the pane of an instant: a key's
// entry has it, or the pane is no longer kept.
func (v *view) canSubtract(c *decode.Count, from time.Time) bool {
	for w := range v.windows() {
		if w.Keeps(from) && !w.Holds(c.Hash, c.Text, w.Index(from), c.N) {
			return false
		}
	}
	return true
}

// subtract subtracts a count for which canSubtract returned true.
func (v *view) subtract(c *decode.Count, from time.Time) {
	for w := range v.windows() {
		if w.Keeps(from) {
			w.Subtract(c.Hash, c.Text, w.Index(from), c.N)
		}
	}
	if v.groups != nil && v.Keeps(from) {
		v.groups.Add(c.Text, v.Index(from), -c.N, decode.NotInGroup)
	}
}
