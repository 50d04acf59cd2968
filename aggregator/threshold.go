package aggregator

import (
	"math"

	"github.com/hotparam/hotparam"
)

// threshold is one threshold of a rule.
type threshold struct {
	*hotparam.Threshold
	rule       *hotparam.Rule
	ruleNumber int
	number     int // among those of the rule
	view       *view
	ranking
}

// needs are the counts that decide on a key in one window: it is hot for certain
// if its low count is at least enter, which is [hotparam.Unknown] when that
// cannot be told; it may be hot if its high count is at least maybe; once hot
// it stays so for certain unless its high count is below exit.
type needs struct{ enter, maybe, exit int64 }

// unreachable is what a key needs that is never hot.
var unreachable = needs{math.MaxInt64, math.MaxInt64, math.MaxInt64}

// least is the lowest count at which some key can be hot.
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

// cause is the threshold as it is told of a key that comes under exception x.
func (t *threshold) cause(x *hotparam.Exception) hotparam.Cause {
	c := t.Cause(t.rule.Count)
	if x != nil && t.replacedBy(x) {
		c.Rate = x.Rate
	}
	return c
}

// needs tells what a key needs in the window that ends with pane last. i is its
// entry in the threshold's view, x the exception that it comes under.
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
		low, high, windows := t.view.history.Baseline(t.view.Window, i, text, last, last <= t.view.closed)
		n.raise(t, low, high, windows)
	case hotparam.Top:
		t.ranked(&n, i)
	}
	return n
}

// reached is what a key needs that is hot from a count on.
func (t *threshold) reached(count int64) needs {
	return needs{count, count, t.ExitCount(count)}
}

// raise makes of what is needed at least the threshold's factor of a reference, of which
// the bounds of the count within so many windows are given; high is
// [hotparam.Unknown] when that cannot be told.
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
