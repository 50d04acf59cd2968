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

// needs tells what a key needs in the window that ends with pane last. i is its
// entry in the threshold's view, x the exception that it comes under.
func (t *threshold) needs(x *hotparam.Exception, i int32, text []byte, last int64) needs {
	if x != nil && x.Action == hotparam.Allow {
		return unreachable
	}
	n := needs{t.Rate.N, t.Rate.N, t.Exit}
	switch t.Kind {
	case hotparam.Absolute:
		if x != nil && t.replacedBy(x) {
			n = needs{x.Rate.N, x.Rate.N, hotparam.ExitCount(x.Rate.N, t.ExitShare())}
		}
	case hotparam.Share:
		low, high := t.view.groups.bounds(t.view.window, text, last)
		n.raise(t, low, high)
	case hotparam.Jump:
		low, high := t.view.history.baseline(t.view.window, i, text, last)
		n.raise(t, low, high)
	case hotparam.Top:
		t.ranked(&n, i)
	}
	return n
}

// raise makes of what is needed at least the threshold's factor of a reference
// of which the bounds are given.
func (n *needs) raise(t *threshold, low, high float64) {
	if high < 0 {
		n.enter = hotparam.Unknown
	} else {
		n.enter = max(n.enter, portion(t.Factor, high))
	}
	if low > 0 {
		n.maybe = max(n.maybe, portion(t.Factor, low))
		n.exit = max(n.exit, portion(t.Factor*t.ExitShare(), low))
	}
}

// portion is the least whole count that is at least factor × n.
func portion(factor, n float64) int64 {
	p := factor * n
	if p >= math.MaxInt64/2 {
		return math.MaxInt64 / 2
	}
	return int64(math.Ceil(p - 1e-9*max(1, p)))
}
