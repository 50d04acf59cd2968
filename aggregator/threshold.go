package aggregator

import (
	"cmp"
	"math"
	"slices"
	"unsafe"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/ring"
	"github.com/hotparam/hotparam/rules"
)

// unreachable are the needs of a key that is never hot.
var unreachable = needs{math.MaxInt64, math.MaxInt64, math.MaxInt64}

// leastCount returns the lowest count at which any key can be hot.
func (t *threshold) leastCount() int64 {
	n := t.Rate.N
	for i := range t.rule.Except {
		if x := &t.rule.Except[i]; t.replacedBy(x) {
			n = min(n, x.Rate.N)
		}
	}
	return n
}

func (t *threshold) replacedBy(x *rules.Exception) bool {
	return t.Kind == rules.FixedRate && !x.Rate.IsZero() && x.Rate.Per == t.Rate.Per
}

// comparesKeys reports whether t compares keys with each other. Keys are judged by such a
// threshold when all counts of a pane have arrived.
func (t *threshold) comparesKeys() bool { return t.Kind == rules.Share || t.Kind == rules.Top }

// isJudgedAtEnd reports whether keys are judged by t when a pane has ended. That includes a
// jump while counts are held back, as its baseline is known by then.
func (t *threshold) isJudgedAtEnd() bool {
	return t.comparesKeys() || t.Kind == rules.Jump && t.view.Held() > 0
}

// cause returns the threshold as it is published for a key with exception x.
func (t *threshold) cause(x *rules.Exception) published.Cause {
	c := published.CauseOf(t.Threshold, t.rule.Count)
	if x != nil && t.replacedBy(x) {
		c.Rate = x.Rate
	}
	return c
}

// needs returns the counts that decide on a key in the window that ends with pane last. i is
// its entry in the threshold's view, and x the exception that applies to it, or nil.
func (t *threshold) needs(x *rules.Exception, i int32, text []byte, last int64) needs {
	if x != nil && x.Action == rules.Allow {
		return unreachable
	}
	n := t.needsAt(t.Rate.N)
	switch t.Kind {
	case rules.FixedRate:
		if x != nil && t.replacedBy(x) {
			n = t.needsAt(x.Rate.N)
		}
	case rules.Share:
		low, high := t.view.groups.Bounds(t.view.Window, text, last)
		n.raise(t, low, high, rules.Fraction{Num: 1, Den: 1})
	case rules.Jump:
		low, high, windows := t.baseline(i, text, last)
		n.raise(t, low, high, windows)
	case rules.Top:
		t.ranked(&n, i, &t.newest)
	}
	return n
}

// needsAt returns the needs of a key that is hot at a count.
func (t *threshold) needsAt(count int64) needs {
	return needs{count, count, t.ExitCount(count)}
}

// raise raises n to the threshold's factor of a reference. low and high bound the reference's
// count in a number of windows; high may be [published.Unknown].
func (n *needs) raise(t *threshold, low, high int64, windows rules.Fraction) {
	mean := windows.Inverse()
	if high == published.Unknown {
		n.enter = published.Unknown
	} else {
		n.enter = max(n.enter, rules.ScaleUp(high, t.Factor, mean))
	}
	if low > 0 {
		n.maybe = max(n.maybe, rules.ScaleUp(low, t.Factor, mean))
		n.exit = max(n.exit, rules.ScaleUp(low, t.Factor, mean, t.Exit))
	}
}

// exceptionOf returns the exception that applies to a key, or nil.
func (r *ruleWatch) exceptionOf(w *watched, text []byte) *rules.Exception {
	switch {
	case len(r.rule.Except) == 0:
		return nil
	case w != nil:
		return w.exception
	}
	return r.rule.Exception(asString(text))
}

// asString returns text as a string without a copy, for calls that do not keep it.
func asString(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }

// unseen returns the least count at which a key without an entry may be hot.
func (t *threshold) unseen(x *rules.Exception) int64 {
	if t.Kind != rules.FixedRate {
		return t.Rate.N
	}
	return t.needs(x, -1, nil, ring.Never).maybe
}

// nearness returns a count divided by the least count at which a key can be hot.
func (t *threshold) nearness(low int64, x *rules.Exception) float64 {
	return float64(low) / float64(t.unseen(x))
}

// rank returns the ranking of the keys by the window that ends with a pane.
func (t *threshold) rank(pane int64) (k ranking) {
	v := t.view
	lacks, before := v.LacksAny(pane), v.Unlisted(pane) // keys without a count here may have earlier ones
	k.pane, k.floor = pane, v.FloorAt(pane)+max(0, lacks)+max(0, before)
	k.unknown = v.NamesRanOut(pane) || lacks == published.Unknown || before == published.Unknown
	v.Each(0, func(i int32) {
		low, high := v.Bounds(i, pane)
		if low >= t.Rate.N {
			k.lows = append(k.lows, low)
		}
		switch { // a key with a lower low count may still have as many
		case high == published.Unknown:
			k.unknown = true
		case high >= t.Rate.N:
			k.highs = append(k.highs, high)
		}
	})
	slices.SortFunc(k.lows, descending)
	slices.SortFunc(k.highs, descending)
	return k
}

// rankEarlier returns the ranking of the keys by a window before the newest.
func (t *threshold) rankEarlier(pane int64) ranking {
	k, ok := t.earlier[pane]
	if !ok {
		if t.earlier == nil {
			t.earlier = make(map[int64]ranking)
		}
		k = t.rank(pane)
		t.earlier[pane] = k
	}
	return k
}

func descending(a, b int64) int { return cmp.Compare(b, a) }

// ranked raises n to the counts that separate entry i from the others in a ranking: a key is
// among the top k if fewer than k others can have as many.
func (t *threshold) ranked(n *needs, i int32, k *ranking) {
	low, high := t.view.Bounds(i, k.pane) // part of the ranking, if they reach the least count
	if k.unknown {
		n.enter = published.Unknown
	} else {
		if k.floor > 0 { // a key that is not in the ranking may have that much
			n.enter = max(n.enter, t.Rate.N+k.floor)
		}
		if rival, ok := kth(k.highs, t.Threshold.Top, high, high >= t.Rate.N); ok {
			n.enter = max(n.enter, rival+1)
		}
	}
	if rival, ok := kth(k.lows, t.Threshold.Top, low, low >= t.Rate.N); ok {
		n.maybe = max(n.maybe, rival+1)
		n.exit = max(n.exit, rules.ScaleUp(rival, t.Exit))
	}
}

// kth returns the k-th highest of counts, leaving out count if among is true.
func kth(counts []int64, k int, count int64, among bool) (int64, bool) {
	if among && k <= len(counts) && count >= counts[k-1] {
		k++
	}
	if k > len(counts) {
		return 0, false
	}
	return counts[k-1], true
}
