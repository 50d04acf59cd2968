package statsdsource

import (
	"slices"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/rules"
)

// enters returns the least count by which a key may become hot in the window that ends with a
// pane.
func (m *resumeModel) enters(text string, th *rules.Threshold, last int64) int64 {
	n, w := th.Rate.N, th.Window()
	switch th.Kind {
	case rules.Share:
		n = max(n, rules.ScaleUp(m.total(w, last), th.Factor))
	case rules.Jump:
		least := int64(0)
		for i, b := range m.baselines(text, w, last) {
			if need := rules.ScaleUp(b.sum, th.Factor, b.mean); i == 0 || need < least {
				least = need
			}
		}
		n = max(n, least)
	case rules.Top:
		if rivals := m.rivals(text, w, last); th.Top <= len(rivals) {
			n = max(n, rivals[th.Top-1]+1)
		}
	}
	return n
}

// leaves returns the highest count below which a key may cool in the window that ends with a
// pane.
func (m *resumeModel) leaves(text string, th *rules.Threshold, last int64) int64 {
	n, w := th.ExitCount(th.Rate.N), th.Window()
	switch th.Kind {
	case rules.Share:
		n = max(n, rules.ScaleUp(m.total(w, last), th.Factor, th.Exit))
	case rules.Jump:
		for _, b := range m.baselines(text, w, last) {
			n = max(n, rules.ScaleUp(b.sum, th.Factor, b.mean, th.Exit))
		}
	case rules.Top:
		if rivals := m.rivals(text, w, last); th.Top <= len(rivals) {
			n = max(n, rules.ScaleUp(rivals[th.Top-1], th.Exit))
		}
	}
	return n
}

// total returns the count of all keys. They are of one group.
func (m *resumeModel) total(w rules.Window, last int64) (n int64) {
	for _, text := range m.texts {
		n += m.sum(text, w, last)
	}
	return n
}

// rivals returns the counts of the other keys, the highest first.
func (m *resumeModel) rivals(text string, w rules.Window, last int64) (all []int64) {
	for _, other := range m.texts {
		if other != text {
			all = append(all, m.sum(other, w, last))
		}
	}
	slices.Sort(all)
	slices.Reverse(all)
	return all
}

// modelBaseline is the count of a key before a window, and the part of it that one window has in
// the mean.
type modelBaseline struct {
	sum  int64
	mean rules.Fraction
}

// baselines returns the possible baselines: over one to ten of the windows before, as far as an
// aggregator knows them.
func (m *resumeModel) baselines(text string, w rules.Window, last int64) (all []modelBaseline) {
	of := int64(w.Panes)
	sums := make([]int64, decode.BaselineWindows*of+1) // of so many panes before the window
	for _, c := range m.truth[text] {
		if back := last - of - w.Index(c.when); back >= 0 && back < decode.BaselineWindows*of {
			sums[back+1] += c.n
		}
	}
	for panes := range sums[1:] {
		sums[panes+1] += sums[panes]
	}
	for panes := of; panes <= decode.BaselineWindows*of; panes++ {
		all = append(all, modelBaseline{sums[panes], rules.Fraction{Num: of, Den: panes}})
	}
	return all
}
