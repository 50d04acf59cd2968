package aggregator

import (
	"math"
	"unsafe"

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
func (t *threshold) cause(x *rules.Exception) rules.Cause {
	c := t.Cause(t.rule.Count)
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
		t.ranked(&n, i)
	}
	return n
}

// needsAt returns the needs of a key that is hot at a count.
func (t *threshold) needsAt(count int64) needs {
	return needs{count, count, t.ExitCount(count)}
}

// raise raises n to the threshold's factor of a reference. low and high bound the reference's
// count in a number of windows; high may be [rules.Unknown].
func (n *needs) raise(t *threshold, low, high int64, windows rules.Fraction) {
	mean := windows.Inverse()
	if high == rules.Unknown {
		n.enter = rules.Unknown
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
