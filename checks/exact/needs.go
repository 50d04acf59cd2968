package exact

import "math/big"

// ceil is the least whole number that is not below n times all ratios.
func ceil(n int64, ratios ...Ratio) int64 {
	num, den := new(big.Int).SetInt64(n), big.NewInt(1)
	for _, r := range ratios {
		num.Mul(num, big.NewInt(r.Num))
		den.Mul(den, big.NewInt(r.Den))
	}
	q, rest := new(big.Int).QuoRem(num, den, new(big.Int))
	if rest.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q.Int64()
}

// Needs are the counts that decide on a key in one window: it is hot from Enter on, and
// cools below Exit. Known is false while the reference is not known.
type Needs struct {
	Enter, Exit int64
	Known       bool
}

// alone are the needs where a key is compared with nothing.
func (t Threshold) alone() Needs { return Needs{t.N, max(1, ceil(t.N, t.Exit)), true} }

// raise makes of the needs at least the threshold's factor of a reference between low and
// high, times a part.
func (n *Needs) raise(t Threshold, low, high int64, part Ratio) {
	n.Enter = max(n.Enter, ceil(high, t.Factor, part))
	n.Exit = max(n.Exit, ceil(low, t.Factor, part, t.Exit))
}

// baselineWindows is how many windows before the present one a baseline is the mean of.
const baselineWindows = 10

// jump are the needs of a key in the window that ends with pane last. Its baseline is the
// mean of the ten windows before that one, or of as much of them as was seen, at least
// one; the pane in which the log began was not. It is counted in steps of a tenth of a
// window, in whole panes: of a step that lies in it in part what a key enters by has all
// counts, what it cools by none.
func (t Threshold) jump(s *series, began, last int64) Needs {
	n := t.alone()
	pane, panes := t.pane(), t.panes()
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
		return s.between(first*pane, (last+1)*pane)
	}
	high := count(from/step*step, to)
	low := count((from+step-1)/step*step, (to+1)/step*step-1)
	n.raise(t, low, high, Ratio{panes, to - from + 1})
	return n
}
