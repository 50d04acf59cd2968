package aggregator

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/aggregator/internal/ring"
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

// family is what a hot key has to do with others of its rule.
type family struct {
	parsed    bool
	route     string   // what stands before the parameters
	params    []string // escaped; none: they cannot be told, or are too many
	names     string   // of the parameters
	general   []general
	heir      *watched // of the more specific ones that are hot: which has most of its traffic
	heirHigh  int64    // and how much that is at most; hotparam.Unknown: cannot be told
	yields    bool     // its traffic is its heir's
	keeps     bool     // is to be listed, as far as is decided
	explains  int      // more specific ones that are hot and not listed
	confirmed bool     // listed by a window that is over
	listedAt  time.Time
	told      told // as it was published last
}

// told is how a key is listed.
type told struct{ listed, usual, spared bool }

// general is a key that is more general than another.
type general struct {
	text   string
	set    uint   // of the other's parameters
	others string // names of those that it has not
}

// generalized is how many parameters a key can have whose more general ones are
// looked for: 2 to the power of it texts.
const generalized = hotparam.MaxCombined

// parse reports whether a key's parameters can be told.
func (r *ruleWatch) parse(w *watched) bool {
	if w.parsed {
		return len(w.params) > 0
	}
	w.parsed = true
	at := strings.LastIndexByte(w.text, '?') + 1
	if r.rule.ParamsOnly {
		at = 0
	}
	w.route = w.text[:at]
	if hotparam.IsCut([]byte(w.text)) || at == 0 && !r.rule.ParamsOnly {
		return false
	}
	params := strings.Split(w.text[at:], "&")
	if len(params) > generalized {
		return false
	}
	w.params, w.names = params, nameSet(params, 1<<len(params)-1)
	return true
}

// nameOf is the name of a parameter, with its source.
func nameOf(param string) string {
	name, _, _ := strings.Cut(param, "=")
	return name
}

// nameSet is the names of a set of parameters.
func nameSet(params []string, set uint) string {
	var b strings.Builder
	for i, p := range params {
		if set&(1<<i) != 0 {
			b.WriteString(nameOf(p))
			b.WriteByte('&')
		}
	}
	return b.String()
}

// generals are the keys that are more general than w.
func (r *ruleWatch) generals(w *watched) []general {
	if !r.combines || w.parsed && (w.general != nil || len(w.params) < 2) || !r.parse(w) {
		return w.general
	}
	for set := uint(1); set < 1<<len(w.params)-1; set++ {
		var b strings.Builder
		b.WriteString(w.route)
		for i, p := range w.params {
			if set&(1<<i) == 0 {
				continue
			}
			if b.Len() > len(w.route) {
				b.WriteByte('&')
			}
			b.WriteString(p)
		}
		text := b.String()
		if !slices.ContainsFunc(w.general, func(g general) bool { return g.text == text }) {
			w.general = append(w.general, general{text, set, nameSet(w.params, ^set)})
		}
	}
	return w.general
}

// hotKey is the hot key with this text; nil: there is none.
func (r *ruleWatch) hotKey(text string) *watched {
	if w := r.keys[text]; w != nil && w.hots > 0 {
		return w
	}
	return nil
}

// hotGenerals calls f with each hot key that is more general than w, until it
// is false.
func (r *ruleWatch) hotGenerals(w *watched, f func(*watched) bool) {
	all := r.generals(w)
	for i := range all {
		if g := r.hotKey(all[i].text); g != nil && !f(g) {
			return
		}
	}
}

// isHiddenBy reports whether a more general key explains w if it is listed.
func (w *watched) isHiddenBy(g *watched) bool { return !g.usual || w.usual }

// highIn is the most that a key can have in the window of a view that ends with
// a pane.
func (w *watched) highIn(v *view, pane int64) int64 {
	if i := w.at[v.number]; i >= 0 {
		_, high := v.Bounds(i, pane)
		return high
	}
	return v.least - 1 + v.bound // else it had an entry
}

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
		i := g.at[v.number]
		low, _ := v.Bounds(i, v.newest)
		if heir != hotparam.Unknown && low-heir >= g.by.needs(g.exception, i, v.Name(i), v.newest).exit {
			by = g
		}
		return by == nil
	})
	return by
}

// attribute decides anew which of a rule's hot keys are usual, listed and spared, by
// the windows that are over of which the last ends with a pane of a view, and adds
// to a change what that changes.
func (d *Detector) attribute(r *ruleWatch, v *view, pane int64, end time.Time, change *hotparam.Change) {
	if len(r.hot) == 0 {
		return
	}
	d.judgeUsual(r, v, pane, end)
	if r.combines {
		d.list(r, end, change)
	}
	d.judgeSpared(r, v, pane, end)
	for _, w := range r.hot {
		if told := (told{w.listed, w.usual, w.spared}); told != w.told && w.listed {
			change.Hot = append(change.Hot, r.describe(w, w.by.view.closed))
		}
		w.told = told{w.listed, w.usual, w.spared}
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
			d.tell(r, w, w.by, Verdict{Decision: Listed, At: end}, w.by.view.closed)
		case w.mayYield(end):
			h := r.describe(w, w.by.view.closed)
			h.Until = end
			w.listed = false
			by := r.explainedBy(w)
			if by == nil {
				by = r.makesWayFor(w)
			}
			d.tell(r, w, w.by, Verdict{Decision: Explained, At: end, By: by.text}, w.by.view.closed)
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
	low, least := w.standing(without.listed)
	v := w.by.view
	return least == hotparam.Unknown || low-max(w.hotPart(), without.lowIn(v, v.closed)) >= least
}

// standing returns what a hot key has counted at least in the window that is over, and
// the count that it needs there: to become hot, or, where something is listed, to stay so.
func (w *watched) standing(listed bool) (low, least int64) {
	v := w.by.view
	i := w.at[v.number]
	low, _ = v.Bounds(i, v.closed)
	n := w.by.needs(w.exception, i, v.Name(i), v.closed)
	if listed {
		return low, n.exit
	}
	return low, n.enter
}

// end is the key that has a key's traffic in the end: its heir, or that one's.
func (w *watched) end() *watched {
	for w.yields && w.heir != nil {
		w = w.heir
	}
	return w
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
		all := r.generals(w)
		for i := range all {
			g := r.hotKey(all[i].text)
			if g == nil || !g.usual && r.completes(w, all[i].set, isUsual) {
				continue // beside a usual key it is the same one
			}
			v := g.by.view
			high := w.highIn(v, v.closed)
			if high == hotparam.Unknown || g.heirHigh == hotparam.Unknown {
				g.heir, g.heirHigh = w, hotparam.Unknown
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
		if g.hots == 0 || g.heir == nil || old.hots == 0 || g.heirHigh == hotparam.Unknown || !g.usual && r.addsUsual(old, g) {
			continue
		}
		high := old.highIn(g.by.view, g.by.view.closed)
		if high >= hotparam.Portion(g.heirHigh, g.by.Exit) {
			g.heir, g.heirHigh = old, max(high, g.heirHigh)
		}
	}
}

// related tells whether one of two keys is more general than the other.
func (r *ruleWatch) related(a, b *watched) bool {
	return r.isMoreGeneral(a, b) || r.isMoreGeneral(b, a)
}

func (r *ruleWatch) isMoreGeneral(a, b *watched) bool {
	return slices.ContainsFunc(r.generals(b), func(g general) bool { return g.text == a.text })
}

// addsUsual reports whether w is a more general key g and a usual key besides.
func (r *ruleWatch) addsUsual(w, g *watched) bool {
	all := r.generals(w)
	at := slices.IndexFunc(all, func(x general) bool { return x.text == g.text })
	return at >= 0 && r.completes(w, all[at].set, isUsual)
}

func isUsual(w *watched) bool { return w.usual }

// yieldsToHeir tells whether a key's traffic is that of one more specific key.
// As long as it cannot be told, all stays as it is.
func (r *ruleWatch) yieldsToHeir(w *watched) bool {
	if w.heir == nil {
		return false
	}
	low, least := w.standing(w.listed)
	if !w.isOver() || w.heirHigh == hotparam.Unknown || least == hotparam.Unknown {
		return !w.listed
	}
	return low-w.heirHigh < least
}

// isOver tells whether the window that made the key hot is over.
func (w *watched) isOver() bool {
	v := w.by.view
	return v.closed != ring.Never && !v.Start(v.closed+1).Before(w.marks[w.by.number].over)
}

// mayYield tells whether a key need not stay listed. What was published before
// a window was over is put right at once; what a window that is over has
// confirmed stays for the hold.
func (w *watched) mayYield(end time.Time) bool {
	return !w.confirmed || !end.Before(w.listedAt.Add(w.by.Hold))
}
