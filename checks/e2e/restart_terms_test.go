package e2e

import (
	"slices"
	"strings"
	"time"

	"github.com/hotparam/hotparam/checks/exact"
)

// restartTruth holds the hot keys that follow from the rules and the true counts.
type restartTruth struct {
	*lossTruth
	plan     *lossPlan
	rules    map[string]*restartRule
	siblings map[string][]int // the keys of each rule that are counted
	reloaded [2]int64         // between these instants
}

func newRestartTruth(plan *lossPlan, truth *lossTruth, reloaded [2]int64) *restartTruth {
	r := &restartTruth{truth, plan, make(map[string]*restartRule), make(map[string][]int), reloaded}
	for i := range plan.rules {
		r.rules[plan.rules[i].id] = &plan.rules[i]
	}
	for i := range plan.keys {
		if k := &plan.keys[i]; !r.isAllowed(i) {
			r.siblings[k.rule] = append(r.siblings[k.rule], i)
		}
	}
	return r
}

func (r *restartTruth) rule(key int) *restartRule { return r.rules[r.plan.keys[key].rule] }

func (r *restartTruth) isAllowed(key int) bool {
	return r.rule(key).vip > 0 && strings.HasPrefix(r.plan.keys[key].value, "free")
}

// counts returns the lowest and the highest count of a threshold that was in force at any time up
// to an instant, give or take the time that a reload may need to show.
func (r *restartTruth) counts(key int, t *restartTerm, at int64) (least, most int64) {
	rule := r.rule(key)
	if t == &rule.terms[0] && rule.vip > 0 && strings.HasPrefix(r.plan.keys[key].value, "vip") {
		return rule.vip, rule.vip
	}
	const slack = int64(2 * time.Second)
	before, after := t.countAfter(false), t.countAfter(true)
	switch {
	case at < r.reloaded[0]-slack:
		after = before
	case at > r.reloaded[1]+slack:
		before = after
	}
	return min(before, after), max(before, after)
}

// portion returns the least whole number that is at least n × num / den.
func portion(n, num, den int64) int64 { return (n*num + den - 1) / den }

// enters returns the least count by which a key may become hot in the window that ends with a
// pane.
func (r *restartTruth) enters(key int, t *restartTerm, last int64) int64 {
	w := exact.NewWindow(t.window)
	from, to := w.Span(last)
	n, _ := r.counts(key, t, to)
	switch t.kind {
	case "share":
		total := int64(0)
		for _, other := range r.siblings[r.plan.keys[key].rule] {
			least, _ := r.keys[other].in(from, to)
			total += least
		}
		return max(n, portion(total, t.part, 100))
	case "jump":
		for i, mean := range r.baselines(key, w, last) {
			if need := portion(mean.first, t.part, mean.last); i == 0 || need < n {
				n = need
			}
		}
		least, _ := r.counts(key, t, to)
		return max(n, least)
	case "top":
		rivals := r.rivals(key, from, to, func(least, _ int64) int64 { return least })
		if int(t.part) <= len(rivals) {
			return max(n, rivals[t.part-1]+1)
		}
	}
	return n
}

// leaves returns the highest count below which a key may cool in the window that ends with a
// pane.
func (r *restartTruth) leaves(key int, t *restartTerm, last int64) int64 {
	w := exact.NewWindow(t.window)
	from, to := w.Span(last)
	_, n := r.counts(key, t, to)
	need := max(1, portion(n, restartExit, 100))
	switch t.kind {
	case "share":
		total := int64(0)
		for _, other := range r.siblings[r.plan.keys[key].rule] {
			_, most := r.keys[other].in(from, to)
			total += most
		}
		need = max(need, portion(total, t.part*restartExit, 100*100))
	case "jump":
		for _, mean := range r.baselines(key, w, last) {
			need = max(need, portion(mean.first, t.part*restartExit, mean.last*100))
		}
	case "top":
		rivals := r.rivals(key, from, to, func(_, most int64) int64 { return most })
		if int(t.part) <= len(rivals) {
			need = max(need, portion(rivals[t.part-1], restartExit, 100))
		}
	}
	return need
}

// rivals returns the counts of the other keys of a rule, the highest first.
func (r *restartTruth) rivals(key int, from, to int64, of func(least, most int64) int64) (counts []int64) {
	for _, other := range r.siblings[r.plan.keys[key].rule] {
		if other != key {
			counts = append(counts, of(r.keys[other].in(from, to)))
		}
	}
	slices.Sort(counts)
	slices.Reverse(counts)
	return counts
}

// baselines returns the counts that a baseline may have, in tenths of windows: the means of one
// to ten of the windows before, as far as an aggregator has received them.
func (r *restartTruth) baselines(key int, w exact.PaneWindow, last int64) (means []lossSpan) {
	to, _ := w.Span(last)
	long := w.Width * w.Panes
	for tenths := int64(10); tenths <= 100; tenths++ {
		// A step of a tenth of a window counts as a whole or not at all.
		inner, _ := r.keys[key].in(to-tenths*long/10+long/5, to-long/5)
		_, outer := r.keys[key].in(to-tenths*long/10-long/5, to)
		means = append(means, lossSpan{10 * inner, tenths}, lossSpan{10 * outer, tenths})
	}
	return means
}
