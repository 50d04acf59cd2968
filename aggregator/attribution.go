package aggregator

import (
	"cmp"
	"slices"
	"time"

	"github.com/hotparam/hotparam"
)

// Of the hot keys of one rule and route, one is more general than another if its
// parameters are a part of the other's. The most general key that explains the
// traffic is listed: one that would still be hot without the key of those more
// specific that has most of its traffic. Then all that are more specific are
// explained by it. Else its traffic is that of the one, which is looked at in its
// turn; what others there are beside that one is the same traffic once more.
//
// A usual key explains those alone that are usual, too, and with a usual key a
// key is no more specific: on nearly all requests, "lang=en&q=phone" is q=phone.
// No key makes way for one that is not listed.

// isHiddenBy reports whether a more general key explains w if it is listed.
func (w *watched) isHiddenBy(g *watched) bool { return !g.usual || w.usual }

// explainer is the listed key that explains one which becomes hot just now; nil:
// none.
func (r *ruleWatch) explainer(w *watched) (by *watched) {
	r.hotGenerals(w, func(g *watched) bool {
		if !g.listed || !w.isHiddenBy(g) {
			return true
		}
		v := g.by.view
		heir := w.highIn(v, v.newest)
		if g.heir != nil && g.heir.hots > 0 && heir != hotparam.Unknown {
			if high := g.heir.highIn(v, v.newest); high == hotparam.Unknown || high > heir {
				heir = high
			}
		}
		low, _ := g.bounds(v, v.newest)
		if heir != hotparam.Unknown && low-heir >= g.needs(g.by, v.newest).exit {
			by = g
		}
		return by == nil
	})
	return by
}

// attribute decides anew which of a rule's hot keys are usual, listed and spared, by
// the windows that are over of which the last ends with a pane of a view, and adds
// to a change what that changes.
func (d *Detector) attribute(v *view, pane int64, change *hotparam.Change) {
	r := v.watch
	if len(r.hot) == 0 {
		return
	}
	d.judgeUsual(v, pane)
	if r.combines {
		d.list(r, v.Start(pane+1), change)
	}
	d.judgeSpared(v, pane)
	for _, w := range r.hot {
		if told := (listing{w.listed, w.usual, w.spared}); told != w.published && w.listed {
			change.Hot = append(change.Hot, w.describe(w.by.view.closed))
		}
		w.published = listing{w.listed, w.usual, w.spared}
	}
}

// list decides which hot keys are listed.
func (d *Detector) list(r *ruleWatch, end time.Time, change *hotparam.Change) {
	r.findHeirs()
	order := slices.Clone(r.hot)
	slices.SortStableFunc(order, func(a, b *watched) int {
		return cmp.Or(cmp.Compare(len(a.params), len(b.params)), cmp.Compare(a.text, b.text))
	})
	r.choose(order)
	for _, w := range order {
		w.explains = 0
		switch {
		case w.keeps == w.listed:
		case w.keeps:
			w.listed, w.listedAt, w.confirmed = true, end, false
			w.since = end
			d.report(w, w.by, Verdict{Kind: Listed, At: end}, w.by.view.closed)
		case w.mayYield(end):
			h := w.describe(w.by.view.closed)
			h.Until = end
			w.listed = false
			by := r.explainedBy(w)
			if by == nil {
				by = r.makesWayFor(w)
			}
			d.report(w, w.by, Verdict{Kind: Explained, At: end, By: by.text}, w.by.view.closed)
			change.Cool = append(change.Cool, h)
		}
		if w.listed {
			w.confirmed = w.confirmed || w.isOver()
		} else {
			r.hotGenerals(w, func(g *watched) bool {
				if g.listed && w.isHiddenBy(g) {
					g.explains++
					return false
				}
				return true
			})
		}
	}
}

// choose decides which keys are to be listed, in order from the most general ones
// on: all that have traffic beside their heir's and are not explained; then those
// that would make way for a key which is not listed itself. Each of the latter is
// listed in place of what it explains, so that there is an end to it.
func (r *ruleWatch) choose(order []*watched) {
	for _, w := range order {
		w.keeps = false
		w.yields = r.yieldsToHeir(w)
	}
	for _, w := range order {
		w.keeps = !w.yields && !r.isHidden(w)
	}
	for more := true; more; {
		more = false
		for _, w := range order {
			if w.keeps || r.isHidden(w) || w.yields && r.makesWayFor(w) != nil {
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
	// What is the same traffic once more goes last, unless another needs it.
	for _, w := range order {
		if !w.keeps || r.beside(w) == nil {
			continue
		}
		w.keeps = false
		for _, g := range order {
			if !g.keeps && r.explainedBy(g) == nil && r.makesWayFor(g) == nil {
				w.keeps = true
				break
			}
		}
	}
}

// isHidden reports whether a more general key that is to be listed explains w.
func (r *ruleWatch) isHidden(w *watched) (hidden bool) {
	r.hotGenerals(w, func(g *watched) bool {
		hidden = g.keeps && w.isHiddenBy(g)
		return !hidden
	})
	return hidden
}

// explainedBy is the key to be listed that explains w: a more general one, or one
// that has the same traffic; nil: none.
func (r *ruleWatch) explainedBy(w *watched) (by *watched) {
	r.hotGenerals(w, func(g *watched) bool {
		if g.keeps && w.isHiddenBy(g) {
			by = g
		}
		return by == nil
	})
	if by == nil {
		by = r.beside(w)
	}
	return by
}

// beside is the key to be listed that a more general key than w makes way for, and
// that has the same traffic as w; nil: none.
func (r *ruleWatch) beside(w *watched) (by *watched) {
	r.hotGenerals(w, func(g *watched) bool {
		if g.yields && !g.keeps {
			if e := g.end(); e != w && e.keeps && w.isHiddenBy(e) && !r.related(e, w) {
				by = e
			}
		}
		return by == nil
	})
	return by
}

// makesWayFor is the key to be listed that a key makes way for which has no traffic
// beside its heir's; nil: none. It is the one that has its traffic in the end, or
// what explains that one, unless this has so much traffic of others that it would
// be limited although another key is the hot one: "lang=en" rather than "q=phone".
func (r *ruleWatch) makesWayFor(w *watched) *watched {
	if !w.yields {
		return nil
	}
	e := w.end()
	if e.keeps {
		return e
	}
	if by := r.explainedBy(e); by != nil && !r.hasOthers(by, w) {
		return by
	}
	return nil
}

// hasOthers reports whether a key would be hot without another, and without what
// hot keys beside it have of its count.
func (r *ruleWatch) hasOthers(w, without *watched) bool {
	low, least := w.countAndNeed(without.listed)
	v := w.by.view
	return least == hotparam.Unknown || low-max(w.hotPart(), without.lowIn(v, v.closed)) >= least
}

// mayYield tells whether a key need not stay listed. What was published before
// a window was over is put right at once; what a window that is over has
// confirmed stays for the hold.
func (w *watched) mayYield(end time.Time) bool {
	return !w.confirmed || !end.Before(w.listedAt.Add(w.by.Hold))
}
