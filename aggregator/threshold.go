package aggregator

import (
	"math"
	"unsafe"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/aggregator/internal/ring"
)

// unreachable are the needs of a key that is never hot.
var unreachable = needs{math.MaxInt64, math.MaxInt64, math.MaxInt64}

// least returns the lowest count at which any key can be hot.
func (t *threshold) least() int64 {
	n := t.Rate.N
	for i := range t.rule.Except {
		if x := &t.rule.Except[i]; t.replacedBy(x) {
			n = min(n, x.Rate.N)
		}
	}
	return n
}

func (t *threshold) replacedBy(x *hotparam.Exception) bool {
	return t.Kind == hotparam.Absolute && !x.Rate.IsZero() && x.Rate.Per == t.Rate.Per
}

// comparesKeys reports whether t compares keys with each other. Keys are judged by such a
// threshold when all counts of a pane have arrived.
func (t *threshold) comparesKeys() bool { return t.Kind == hotparam.Share || t.Kind == hotparam.Top }

// isJudgedAtEnd reports whether keys are judged by t when a pane is over: also by a jump
// while counts are held back, as its baseline is known by then.
func (t *threshold) isJudgedAtEnd() bool {
	return t.comparesKeys() || t.Kind == hotparam.Jump && t.view.Held() > 0
}

// cause returns the threshold as it is published of a key that comes under exception x.
func (t *threshold) cause(x *hotparam.Exception) hotparam.Cause {
	c := t.Cause(t.rule.Count)
	if x != nil && t.replacedBy(x) {
		c.Rate = x.Rate
	}
	return c
}

// needs returns the counts that decide on a key in the window that ends with pane last. i is
// its entry in the threshold's view, and x the exception that it comes under.
func (t *threshold) needs(x *hotparam.Exception, i int32, text []byte, last int64) needs {
	if x != nil && x.Action == hotparam.Allow {
		return unreachable
	}
	n := t.reached(t.Rate.N)
	switch t.Kind {
	case hotparam.Absolute:
		if x != nil && t.replacedBy(x) {
			n = t.reached(x.Rate.N)
		}
	case hotparam.Share:
		low, high := t.view.groups.Bounds(t.view.Window, text, last)
		n.raise(t, low, high, hotparam.Fraction{Num: 1, Den: 1})
	case hotparam.Jump:
		low, high, windows := t.baseline(i, text, last)
		n.raise(t, low, high, windows)
	case hotparam.Top:
		t.ranked(&n, i)
	}
	return n
}

// reached returns the needs of a key that is hot at a count.
func (t *threshold) reached(count int64) needs {
	return needs{count, count, t.ExitCount(count)}
}

// raise raises n to the threshold's factor of a reference. low and high bound the reference's
// count within so many windows; high may be [hotparam.Unknown].
func (n *needs) raise(t *threshold, low, high int64, windows hotparam.Fraction) {
	mean := windows.Inverse()
	if high == hotparam.Unknown {
		n.enter = hotparam.Unknown
	} else {
		n.enter = max(n.enter, hotparam.Portion(high, t.Factor, mean))
	}
	if low > 0 {
		n.maybe = max(n.maybe, hotparam.Portion(low, t.Factor, mean))
		n.exit = max(n.exit, hotparam.Portion(low, t.Factor, mean, t.Exit))
	}
}

// exceptionOf returns the exception that a key comes under, or nil.
func (r *ruleWatch) exceptionOf(w *watched, text []byte) *hotparam.Exception {
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
func (t *threshold) unseen(x *hotparam.Exception) int64 {
	if t.Kind != hotparam.Absolute {
		return t.Rate.N
	}
	return t.needs(x, -1, nil, ring.Never).maybe
}

// nearness returns a count divided by the least count at which a key can be hot.
func (t *threshold) nearness(low int64, x *hotparam.Exception) float64 {
	return float64(low) / float64(t.unseen(x))
}
