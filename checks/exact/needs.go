package exact

import "math/big"

// ceil returns n times all ratios, rounded up.
func ceil(n int64, ratios ...Ratio) int64 {
	num, den := new(big.Int).SetInt64(n), big.NewInt(1)
	for _, r := range ratios {
		num.Mul(num, big.NewInt(r.Num))
		den.Mul(den, big.NewInt(r.Den))
	}
	q, remainder := new(big.Int).QuoRem(num, den, new(big.Int))
	if remainder.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q.Int64()
}

// Needs are the counts that decide on a key in one window: it becomes hot at Enter and cools
// below Exit. Known is false while the reference is unknown.
type Needs struct {
	Enter, Exit int64
	Known       bool
}

// ownNeeds returns the needs of a key that is compared with nothing.
func (t ThresholdSpec) ownNeeds() Needs { return Needs{t.N, max(1, ceil(t.N, t.Exit)), true} }

// raise raises n to the threshold's factor times part of a reference. Enter uses high, the
// reference's upper bound, and Exit uses low.
func (n *Needs) raise(t ThresholdSpec, low, high int64, part Ratio) {
	n.Enter = max(n.Enter, ceil(high, t.Factor, part))
	n.Exit = max(n.Exit, ceil(low, t.Factor, part, t.Exit))
}

// baselineWindows is the number of earlier windows that a baseline averages.
const baselineWindows = 10

// jumpNeeds returns the needs of a key in the window that ends with pane last. Its baseline is the
// mean of the ten windows before that one, or of the part of them that was seen, at least one
// window. The pane in which the log began does not count as seen. The baseline is counted in
// steps of a tenth of a window, in whole panes. A step that lies only partly in the baseline
// counts whole for Enter and not at all for Exit.
func (t ThresholdSpec) jumpNeeds(s *countSeries, began, last int64) Needs {
	n := t.ownNeeds()
	w := NewWindow(t.D)
	pane, panes := w.Width, w.Panes
	step := (panes + baselineWindows - 1) / baselineWindows
	to := last - panes
	from := max(to-baselineWindows*panes+1, began/pane+1)
	if to-from+1 < panes {
		n.Known = false
		return n
	}
	count := func(first, last int64) int64 {
		if last < first {
			return 0
		}
		return s.sumBetween(first*pane, (last+1)*pane)
	}
	high := count(from/step*step, to)
	low := count((from+step-1)/step*step, (to+1)/step*step-1)
	n.raise(t, low, high, Ratio{panes, to - from + 1})
	return n
}
