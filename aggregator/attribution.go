package aggregator

import (
	"cmp"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/published"
)

// A hot key is more general than another of the same rule and route if its parameters are a
// subset of the other's. It is also more general if it has a wider network where the other has
// an address. The heir of a key is the more specific key that has most of its traffic. A key
// that would still be hot without its heir is listed, and explains all more specific keys. So
// the most general key that explains the traffic is listed.
//
// A key that would not be hot without its heir yields: its traffic is the heir's, and the heir
// is judged next. Other more specific keys of a key that yields have the same traffic as the
// heir, so listing them would repeat it.
//
// A usual key explains only usual keys, and a key that adds a usual key is no more specific: if
// nearly all requests have lang=en, then "lang=en&q=phone" is the same as q=phone. A key yields
// only to a listed one.

// isHiddenBy reports whether g, a more general key, explains w if g is listed.
func (w *watched) isHiddenBy(g *watched) bool { return !g.usual || w.usual }

// explainer returns the listed key that explains w, which has just become hot, or nil. A more
// general key explains w if it would still be hot without its heir, and without w.
func (r *ruleWatch) explainer(w *watched) *watched {
	for g := range r.hotGenerals(w) {
		if !g.listed || !w.isHiddenBy(g) {
			continue
		}
		v := g.holder.view
		heir := w.highIn(v, v.newest)
		if g.heir != nil && g.heir.hotMarks > 0 && heir != published.Unknown {
			if high := g.heir.highIn(v, v.newest); high == published.Unknown || high > heir {
				heir = high
			}
		}
		low, _ := g.bounds(v, v.newest)
		if heir != published.Unknown && low-heir >= g.needs(g.holder, v.newest).exit {
			return g
		}
	}
	return nil
}

// attribute decides again which hot keys are usual, listed and spared, by the window of v that
// ends with a pane, and adds the differences to change.
func (d *Detector) attribute(v *view, pane int64, change *published.Change) {
	r := v.watch
	if len(r.hot) == 0 {
		return
	}
	d.judgeUsual(v, pane)
	if r.combines {
		d.updateListed(r, v.Start(pane+1), change)
	}
	d.judgeSpared(v, pane)
	for _, w := range r.hot {
		if current := (listing{w.listed, w.usual, w.spared}); current != w.published && w.listed {
			change.Hot = append(change.Hot, w.describe(w.holder.view.closed))
		}
		w.published = listing{w.listed, w.usual, w.spared}
	}
}

// updateListed decides which hot keys are listed, and reports the changes. It adds keys that
// leave the list to change.Cool.
func (d *Detector) updateListed(r *ruleWatch, end time.Time, change *published.Change) {
	r.findHeirs()
	order := slices.Clone(r.hot)
	slices.SortStableFunc(order, func(a, b *watched) int {
		return cmp.Or(cmp.Compare(len(a.params), len(b.params)), r.compareWidth(a, b), cmp.Compare(a.text, b.text))
	})
	r.chooseListed(order)
	for _, w := range order {
		w.explains = 0
		switch {
		case w.keeps == w.listed:
		case w.keeps:
			w.listed, w.listedAt, w.confirmed = true, end, false
			w.since = end
			d.report(w, w.holder, Verdict{Kind: verdictListed, At: end}, w.holder.view.closed)
		case w.mayYield(end):
			h := w.describe(w.holder.view.closed)
			h.Until = end
			w.listed = false
			explainer := r.explainedBy(w)
			if explainer == nil {
				explainer = r.makesWayFor(w)
			}
			// explainer is not nil: chooseListed leaves a key out only if one that it lists explains
			// or replaces it.
			d.report(w, w.holder, Verdict{Kind: verdictExplained, At: end, By: explainer.text}, w.holder.view.closed)
			change.Cool = append(change.Cool, h)
		}
		if w.listed {
			w.confirmed = w.confirmed || w.isOver()
			continue
		}
		for g := range r.hotGenerals(w) {
			if g.listed && w.isHiddenBy(g) {
				g.explains++
				break
			}
		}
	}
}

// chooseListed sets keeps for the keys that are to be listed. order begins with the most general
// ones. It first takes all keys that would be hot without their heir and are not explained.
// Then it adds keys that yield, but to a key that is not listed itself. Each of these replaces
// the keys that it explains, so the loop ends.
func (r *ruleWatch) chooseListed(order []*watched) {
	for _, w := range order {
		w.keeps = false
		w.yields = r.yieldsToHeir(w)
	}
	for _, w := range order {
		w.keeps = !w.yields && r.hider(w) == nil
	}
	for more := true; more; {
		more = false
		for _, w := range order {
			if w.keeps || r.hider(w) != nil || w.yields && r.makesWayFor(w) != nil {
				continue
			}
			w.keeps = true
			for _, s := range w.specifics {
				if s.keeps && s.isHiddenBy(w) {
					s.keeps, more = false, true
				}
			}
		}
	}
	// Last, drop a key that has the same traffic as a listed one, unless some hot key would then
	// have no listed key that explains or replaces it.
	for _, w := range order {
		if !w.keeps || r.listedBeside(w) == nil {
			continue
		}
		w.keeps = false
		w.keeps = slices.ContainsFunc(order, func(g *watched) bool {
			return !g.keeps && r.explainedBy(g) == nil && r.makesWayFor(g) == nil
		})
	}
}

// hider returns a more general key that is to be listed and explains w, or nil.
func (r *ruleWatch) hider(w *watched) *watched {
	for g := range r.hotGenerals(w) {
		if g.keeps && w.isHiddenBy(g) {
			return g
		}
	}
	return nil
}

// explainedBy returns the key to be listed that explains w: a more general one, or one with the
// same traffic. It returns nil if there is none.
func (r *ruleWatch) explainedBy(w *watched) *watched {
	if g := r.hider(w); g != nil {
		return g
	}
	return r.listedBeside(w)
}

// listedBeside returns the key to be listed that has the same traffic as w because a more
// general key than w yields to it, or nil.
func (r *ruleWatch) listedBeside(w *watched) *watched {
	for g := range r.hotGenerals(w) {
		if !g.yields || g.keeps {
			continue
		}
		if e := g.lastHeir(); e != w && e.keeps && w.isHiddenBy(e) && !r.related(e, w) {
			return e
		}
	}
	return nil
}

// makesWayFor returns the key to be listed in place of w, which would not be hot without its
// heir, or nil. It is the last heir, or the key that explains the last heir. The latter does
// not count if it has much other traffic, which would be limited too: listing "lang=en" for a
// hot "q=phone".
func (r *ruleWatch) makesWayFor(w *watched) *watched {
	if !w.yields {
		return nil
	}
	e := w.lastHeir()
	if e.keeps {
		return e
	}
	if explainer := r.explainedBy(e); explainer != nil && !r.hasOthers(explainer, w) {
		return explainer
	}
	return nil
}

// hasOthers reports whether w would be hot without the larger of the other key's count and the
// part of its count that related hot keys have. The two overlap, so they are not added up.
func (r *ruleWatch) hasOthers(w, without *watched) bool {
	low, least := w.countAndNeed(without.listed)
	v := w.holder.view
	return least == published.Unknown || low-max(w.hotPart(), without.lowIn(v, v.closed)) >= least
}

// mayYield reports whether a key may leave the list. A listing from before the end of a window
// is corrected at once. A listing that an ended window has confirmed stays for the hold.
func (w *watched) mayYield(end time.Time) bool {
	return !w.confirmed || !end.Before(w.listedAt.Add(w.holder.Hold))
}
