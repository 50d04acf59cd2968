package aggregator

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/hotparam/hotparam"
)

// Of the hot keys of one rule and route, one is more general than another if its
// parameters are a part of the other's. The most general key that explains the
// traffic is listed: one that would still be hot without the key of those more
// specific that has most of its traffic. Then all that are more specific are
// explained by it. Else its traffic is that of the one, which is looked at in its
// turn; what others there are beside that one is the same traffic once more.

// family is what a hot key has to do with others of its rule.
type family struct {
	parsed    bool
	size      int      // parameters
	general   []string // texts of the more general keys
	heir      *watched // of the more specific ones that are hot: which has most of its traffic
	heirHigh  int64    // and how much that is at most; hotparam.Unknown: cannot be told
	yields    bool     // its traffic is its heir's
	explains  int      // more specific ones that are hot and not listed
	confirmed bool     // listed by a window that is over
	listedAt  time.Time
}

// generalized is how many parameters a key can have whose more general ones are
// looked for: 2 to the power of it texts.
const generalized = hotparam.MaxCombined

// generals are the texts of the keys that are more general than w.
func (r *ruleWatch) generals(w *watched) []string {
	if w.parsed {
		return w.general
	}
	w.parsed = true
	if hotparam.IsCut([]byte(w.text)) {
		return nil
	}
	at := strings.LastIndexByte(w.text, '?') + 1
	if r.rule.ParamsOnly {
		at = 0
	} else if at == 0 {
		return nil
	}
	params := strings.Split(w.text[at:], "&")
	w.size = len(params)
	if w.size > generalized {
		return nil
	}
	for set := 1; set < 1<<w.size-1; set++ {
		var b strings.Builder
		b.WriteString(w.text[:at])
		for i, p := range params {
			if set&(1<<i) == 0 {
				continue
			}
			if b.Len() > at {
				b.WriteByte('&')
			}
			b.WriteString(p)
		}
		if text := b.String(); !slices.Contains(w.general, text) {
			w.general = append(w.general, text)
		}
	}
	return w.general
}

// hotGenerals calls f with each hot key that is more general than w, until it
// is false.
func (r *ruleWatch) hotGenerals(w *watched, f func(*watched) bool) {
	for _, text := range r.generals(w) {
		if g := r.keys[text]; g != nil && g.hots > 0 && !f(g) {
			return
		}
	}
}

// highIn is the most that a key can have in the window of a view that ends with
// a pane.
func (w *watched) highIn(v *view, pane int64) int64 {
	if i := w.at[v.number]; i >= 0 {
		_, high := v.bounds(i, pane)
		return high
	}
	return v.least - 1 + v.bound // else it had an entry
}

// explainer is the listed key that explains one which becomes hot just now; nil:
// none.
func (r *ruleWatch) explainer(w *watched) (by *watched) {
	r.hotGenerals(w, func(g *watched) bool {
		if !g.listed {
			return true
		}
		v := g.by.view
		heir := w.highIn(v, v.newest)
		if g.heir != nil && g.heir.hots > 0 && heir != hotparam.Unknown {
			if high := g.heir.highIn(v, v.newest); high == hotparam.Unknown || high > heir {
				heir = high
			}
		}
		i := g.at[v.number]
		low, _ := v.bounds(i, v.newest)
		if heir != hotparam.Unknown && low-heir >= g.by.needs(g.exception, i, v.name(i), v.newest).exit {
			by = g
		}
		return by == nil
	})
	return by
}

// attribute decides anew which of a rule's hot keys are listed, by the windows
// that are over, and adds to a change what that changes.
func (d *Detector) attribute(r *ruleWatch, end time.Time, change *hotparam.Change) {
	if len(r.hot) == 0 {
		return
	}
	r.findHeirs()
	order := slices.Clone(r.hot)
	slices.SortStableFunc(order, func(a, b *watched) int {
		return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.text, b.text))
	})
	for _, w := range order {
		w.explains, w.yields = 0, false
		by := r.explainedBy(w)
		list := by == nil && !r.yieldsToHeir(w)
		switch {
		case list == w.listed:
		case list:
			w.listed, w.listedAt, w.confirmed = true, end, false
			d.tell(r, w, w.by, Verdict{Decision: Listed, At: end}, w.by.view.closed)
			change.Hot = append(change.Hot, r.describe(w, w.by.view.closed))
		case w.mayYield(end):
			h := r.describe(w, w.by.view.closed)
			h.Until = end
			w.listed = false
			if by == nil {
				by = w.heir
			}
			d.tell(r, w, w.by, Verdict{Decision: Explained, At: end, By: by.text}, w.by.view.closed)
			change.Cool = append(change.Cool, h)
		}
		if w.listed {
			w.confirmed = w.confirmed || w.isOver()
		} else {
			r.hotGenerals(w, func(g *watched) bool {
				if g.listed {
					g.explains++
				}
				return !g.listed
			})
		}
	}
}

// findHeirs finds which of the more specific keys has most of each key's
// traffic. Of equals it is the one that was so before, or the most general one,
// so that nothing changes for nothing.
func (r *ruleWatch) findHeirs() {
	before := make(map[*watched]*watched)
	for _, w := range r.hot {
		if w.heir != nil {
			before[w] = w.heir
		}
		w.heir, w.heirHigh = nil, 0
	}
	for _, w := range r.hot {
		r.hotGenerals(w, func(g *watched) bool {
			v := g.by.view
			high := w.highIn(v, v.closed)
			if high == hotparam.Unknown || g.heirHigh == hotparam.Unknown {
				g.heir, g.heirHigh = w, hotparam.Unknown
				return true
			}
			c := cmp.Compare(high, g.heirHigh)
			if g.heir != nil && c == 0 {
				c = cmp.Or(cmp.Compare(g.heir.size, w.size), cmp.Compare(g.heir.text, w.text))
			}
			if g.heir == nil || c > 0 {
				g.heir, g.heirHigh = w, high
			}
			return true
		})
	}
	for g, old := range before {
		if g.hots == 0 || g.heir == nil || old.hots == 0 || g.heirHigh == hotparam.Unknown {
			continue
		}
		high := old.highIn(g.by.view, g.by.view.closed)
		if high >= portion(g.by.ExitShare(), float64(g.heirHigh)) {
			g.heir, g.heirHigh = old, max(high, g.heirHigh)
		}
	}
}

// explainedBy is the more general key that explains w, or the one beside it that
// has the same traffic; nil: none.
func (r *ruleWatch) explainedBy(w *watched) (by *watched) {
	r.hotGenerals(w, func(g *watched) bool {
		switch {
		case g.listed:
			by = g
		case g.yields && g.heir != w && !r.related(g.heir, w):
			by = g.heir
		}
		return by == nil
	})
	return by
}

// related tells whether one of two keys is more general than the other.
func (r *ruleWatch) related(a, b *watched) bool {
	return slices.Contains(r.generals(b), a.text) || slices.Contains(r.generals(a), b.text)
}

// yieldsToHeir tells whether a key's traffic is that of one more specific key.
// As long as it cannot be told, all stays as it is.
func (r *ruleWatch) yieldsToHeir(w *watched) bool {
	if w.heir == nil {
		return false
	}
	v := w.by.view
	i := w.at[v.number]
	low, _ := v.bounds(i, v.closed)
	n := w.by.needs(w.exception, i, v.name(i), v.closed)
	least := n.enter
	if w.listed {
		least = n.exit
	}
	if !w.isOver() || w.heirHigh == hotparam.Unknown || least == hotparam.Unknown {
		w.yields = !w.listed
	} else {
		w.yields = low-w.heirHigh < least
	}
	return w.yields
}

// isOver tells whether the window that made the key hot is over.
func (w *watched) isOver() bool {
	v := w.by.view
	return v.closed != never && !v.Start(v.closed+1).Before(w.marks[w.by.number].over)
}

// mayYield tells whether a key need not stay listed. What was published before
// a window was over is put right at once; what a window that is over has
// confirmed stays for the hold.
func (w *watched) mayYield(end time.Time) bool {
	return !w.confirmed || !end.Before(w.listedAt.Add(w.by.Hold))
}
