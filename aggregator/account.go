package aggregator

import (
	"time"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/ring"
	"github.com/hotparam/hotparam/rules"
)

// Account describes a key and one threshold of its rule at the end of a pane.
type Account struct {
	Rule      string
	Threshold *rules.Threshold
	// Start and End bound the pane. Counted is the count in it.
	Start, End time.Time
	Counted    int64
	// Low and High bound the count in the window that ends with the pane. High may be
	// [published.Unknown].
	Low, High int64
	// Enter is the lowest count that makes the key hot, or [published.Unknown]. The key cools
	// when its count is below Exit.
	Enter, Exit int64
	// Hot reports whether the threshold holds the key hot, and Listed whether the key is
	// published.
	Hot, Listed bool
}

// accountant reports the accounts of one key.
type accountant struct {
	key       rules.Key // key of any rule if it names none
	onAccount func(Account)
	hash      uint64
}

// explained is the state of the explained key in a view.
type explained struct {
	counted bool
	due     int64 // newest pane whose end has to be reported
	hot     bool  // whether the key was hot at the end of the previous pane
}

// recordCount records that c was counted, if its key is the explained one.
func (a *accountant) recordCount(r *ruleWatch, c *decode.Count) {
	if a.key.Rule != "" && a.key.Rule != r.rule.ID || string(c.Text) != a.key.Text {
		return
	}
	a.hash = c.Hash
	for _, v := range r.views {
		x, pane := &v.explained, v.Index(c.When)
		if due := pane + int64(v.Panes); !x.counted || due > x.due {
			x.counted, x.due = true, due
		}
		if v.closed == ring.Never {
			v.closed = pane - 1
		}
	}
}

// closePane reports the accounts of the key after a pane was closed.
func (a *accountant) closePane(v *view, pane int64) {
	if a == nil || !v.explained.counted {
		return
	}
	text := []byte(a.key.Text)
	i := v.Find(a.hash, text)
	if i < 0 || pane > v.explained.due && !v.explained.hot {
		return
	}
	w := v.watched(i)
	v.explained.hot = w != nil && w.hotMarks > 0
	for _, t := range v.thresholds {
		n := t.needs(v.watch.exceptionOf(w, text), i, text, pane)
		x := Account{
			Rule: v.watch.rule.ID, Threshold: t.Threshold, Start: v.Start(pane), End: v.Start(pane + 1),
			Enter: n.enter, Exit: n.exit,
		}
		x.Counted, _ = v.Span(a.hash, text, pane, 1)
		x.Low, x.High = v.Bounds(i, pane)
		if w != nil {
			x.Hot, x.Listed = w.marks[t.number].hot, w.listed
		}
		a.onAccount(x)
	}
}
