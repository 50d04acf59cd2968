package aggregator

import (
	"cmp"
	"slices"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// lastHeir follows the heirs of w while keys yield, and returns the last: the key that has w's
// traffic. (See attribution.go.)
func (w *watched) lastHeir() *watched {
	for w.yields && w.heir != nil {
		w = w.heir
	}
	return w
}

// findHeirs finds the heir of each hot key: the more specific key that has most of its traffic.
// Among equal keys it takes the most general one. It keeps the previous heir while that has
// almost as much traffic, so that heirs do not alternate.
func (r *ruleWatch) findHeirs() {
	before := make(map[*watched]*watched)
	for _, w := range r.hot {
		if w.heir != nil {
			before[w] = w.heir
		}
		w.heir, w.heirHigh = nil, 0
	}
	for _, w := range r.hot {
		for g, how := range r.hotGenerals(w) {
			if !g.usual && r.completes(w, how.set, isUsual) {
				continue // a key that only adds a usual key is not more specific
			}
			v := g.holder.view
			high := w.highIn(v, v.closed)
			if high == published.Unknown || g.heirHigh == published.Unknown {
				g.heir, g.heirHigh = w, published.Unknown
				continue
			}
			c := cmp.Compare(high, g.heirHigh)
			if g.heir != nil && c == 0 {
				c = cmp.Or(cmp.Compare(len(g.heir.params), len(w.params)), cmp.Compare(g.heir.text, w.text))
			}
			if g.heir == nil || c > 0 {
				g.heir, g.heirHigh = w, high
			}
		}
	}
	for g, old := range before {
		if g.hotMarks == 0 || g.heir == nil || old.hotMarks == 0 || g.heirHigh == published.Unknown || !g.usual && r.addsUsual(old, g) {
			continue
		}
		high := old.highIn(g.holder.view, g.holder.view.closed)
		if high >= rules.ScaleUp(g.heirHigh, g.holder.Exit) {
			g.heir, g.heirHigh = old, max(high, g.heirHigh)
		}
	}
}

// related reports whether one of two keys is more general than the other.
func (r *ruleWatch) related(a, b *watched) bool {
	return r.isMoreGeneral(a, b) || r.isMoreGeneral(b, a)
}

func (r *ruleWatch) isMoreGeneral(a, b *watched) bool {
	return slices.ContainsFunc(r.generals(b), func(g general) bool { return g.text == a.text })
}

// addsUsual reports whether the parameters of w are those of g, a more general key, and of a
// usual key.
func (r *ruleWatch) addsUsual(w, g *watched) bool {
	all := r.generals(w)
	i := slices.IndexFunc(all, func(x general) bool { return x.text == g.text })
	return i >= 0 && r.completes(w, all[i].set, isUsual)
}

func isUsual(w *watched) bool { return w.usual }

// yieldsToHeir reports whether w would not be hot without its heir. While that is unknown, the
// previous decision stands.
func (r *ruleWatch) yieldsToHeir(w *watched) bool {
	if w.heir == nil {
		return false
	}
	low, least := w.countAndNeed(w.listed)
	if !w.isOver() || w.heirHigh == published.Unknown || least == published.Unknown {
		return !w.listed
	}
	return low-w.heirHigh < least
}
