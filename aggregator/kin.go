package aggregator

import (
	"slices"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/published"
)

// Two hot keys of a rule and route are related if some requests have both. If keys combine, the
// parameters of one are a subset of the other's, or the key of both is hot as well. If they do
// not combine, or a request has too many parameters for the key of both, no key shows it. Then,
// in rules that count each parameter, keys of different names are related. In other rules, a
// key on nearly all requests is related to keys of other names that have more requests than
// there are without it, since some requests must have both.
//
// findParts bounds from below the part of a key's count that related hot keys have. A key that
// would not be hot without the part of keys that are not usual is not usual itself.
// findListedKin bounds from above the part that related listed keys have which are not usual. A
// usual key is spared while that part explains the excess of its count.

// addPart adds the count of w, a more specific key, to the parts of a more general one. others
// are the names that the general one lacks.
func (k *kin) addPart(w *watched, others string, v *view, pane int64) {
	i := slices.IndexFunc(k.parts, func(p kinPart) bool { return p.names == others })
	if i < 0 {
		i = len(k.parts)
		k.parts = append(k.parts, kinPart{names: others, repeated: w.repeatedIn(v, pane)})
	}
	p := &k.parts[i]
	low := w.lowIn(v, pane)
	p.all.add(low)
	if !w.usual {
		p.unusual.add(low)
	}
}

// hotPart returns a lower bound of the part of a key's count that related hot keys have.
func (k *kin) hotPart() (low int64) {
	for i := range k.parts {
		low = max(low, k.parts[i].all.atLeast(k.parts[i].repeated))
	}
	return low
}

// unusualPart is like hotPart, for related hot keys that are not usual.
func (k *kin) unusualPart() (low int64) {
	for i := range k.parts {
		low = max(low, k.parts[i].unusual.atLeast(k.parts[i].repeated))
	}
	return low
}

// repeatedIn returns the most counts of a key's group whose requests count for several keys of
// the group, in the window of v that ends with a pane.
func (w *watched) repeatedIn(v *view, pane int64) int64 {
	return v.totals.HighRepeats(v.Window, base.AppendGroup(nil, []byte(w.text), w.rule.rule.ParamsOnly), pane)
}

// findParts finds the parts of the counts of v's hot keys that related hot keys have, and the
// specifics of each hot key. A key on nearly all requests is not counted as a part of another,
// as it explains nothing.
func (r *ruleWatch) findParts(v *view, pane int64) {
	for _, w := range r.hot {
		clear(w.specifics)
		w.kin = kin{parts: w.parts[:0], specifics: w.specifics[:0]}
	}
	if r.combines {
		for _, w := range r.hot {
			for g, how := range r.hotGenerals(w) {
				g.specifics = append(g.specifics, w)
				if g.holder.view == v && !w.byShare {
					g.addPart(w, how.others, v, pane)
				}
			}
		}
	}
	shared := r.sharedBy(v)
	if len(shared) == 0 {
		return
	}
	groups := r.groupsOf(v, pane, func(w *watched) bool { return !w.usual && !w.byShare })
	for _, u := range shared {
		low := u.lowIn(v, pane)
		total := v.totals.High(v.Window, []byte(u.text), pane)
		for i := range groups {
			if g := &groups[i]; total != published.Unknown && g.key.isApart(u) {
				both := groupTally{highest: g.low - (total - low)}
				u.parts = append(u.parts, kinPart{repeated: published.Unknown, all: both, unusual: both})
			}
		}
	}
}

// sharedBy returns the keys of a view that are on nearly all requests.
func (r *ruleWatch) sharedBy(v *view) (keys []*watched) {
	for _, w := range r.hot {
		if w.byShare && w.holder.view == v {
			keys = append(keys, w)
		}
	}
	return keys
}

// kinGroup holds the hot keys of a route that have the same parameter names.
type kinGroup struct {
	key       *watched // one of the keys
	lows      groupTally
	low, high int64 // bounds of the requests of all keys; high may be published.Unknown
}

// groupsOf returns the groups of the hot keys for which wanted returns true, with their counts
// in the window of a view that ends with a pane.
func (r *ruleWatch) groupsOf(v *view, pane int64, wanted func(*watched) bool) (groups []kinGroup) {
	indices := make(map[string]int)
	for _, w := range r.hot {
		if !r.parse(w) || !wanted(w) {
			continue
		}
		name := w.route + w.names
		i, ok := indices[name]
		if !ok {
			i = len(groups)
			indices[name] = i
			groups = append(groups, kinGroup{key: w})
		}
		g := &groups[i]
		g.lows.add(w.lowIn(v, pane))
		if high := w.highIn(v, pane); high == published.Unknown || g.high == published.Unknown {
			g.high = published.Unknown
		} else {
			g.high += high
		}
	}
	for i := range groups {
		g := &groups[i]
		g.low = g.lows.atLeast(g.key.repeatedIn(v, pane))
	}
	return groups
}

// findListedKin finds, for each usual key of v, whether a listed key that is not usual is
// related to it, and how much of its count such keys explain.
func (r *ruleWatch) findListedKin(v *view, pane int64) {
	for _, w := range r.hot {
		w.related, w.explained = false, 0
	}
	isListed := func(w *watched) bool { return w.listed && !w.usual }
	if r.combines {
		for _, w := range r.hot {
			for u, how := range r.hotGenerals(w) {
				if u.usual && u.holder.view == v && (isListed(w) || r.completes(w, how.set, isListed)) {
					u.addExplained(w.highIn(v, pane))
				}
			}
		}
	}
	usual := r.sharedBy(v)
	if !r.combines {
		usual = r.hot
	} else if len(r.rule.By.Names) > 0 {
		return // the key of both is always counted
	}
	var groups []kinGroup
	for _, u := range usual {
		if !u.usual || u.holder.view != v || !r.parse(u) {
			continue
		}
		if groups == nil {
			groups = r.groupsOf(v, pane, isListed)
		}
		for i := range groups {
			if g := &groups[i]; g.key.isApart(u) && r.coincide(u, g, v, pane) {
				u.addExplained(g.high)
			}
		}
	}
}

// addExplained records that a listed key is related, which has at most high of the key's count.
func (k *kin) addExplained(high int64) {
	k.related = true
	if high == published.Unknown || k.explained == published.Unknown {
		k.explained = published.Unknown
	} else {
		k.explained += high
	}
}

// completes reports whether some hot key has the parameters of w that are not in set, and
// wanted returns true for it.
func (r *ruleWatch) completes(w *watched, set uint, wanted func(*watched) bool) bool {
	for g, how := range r.hotGenerals(w) {
		if how.set|set == 1<<len(w.params)-1 && wanted(g) {
			return true
		}
	}
	return false
}

// coincide reports whether some requests of g have the key u, if no key of both is hot.
func (r *ruleWatch) coincide(u *watched, g *kinGroup, v *view, pane int64) bool {
	if !r.combines {
		return true
	}
	for _, w := range u.specifics {
		all := r.generals(w)
		for i := range all {
			if all[i].others == u.names && w.hotMarks > 0 && nameSet(w.params, all[i].set) == g.key.names {
				return false // the common part of the two is counted already
			}
		}
	}
	low := u.lowIn(v, pane)
	total := v.totals.High(v.Window, []byte(u.text), pane)
	return total != published.Unknown && g.low > total-low
}

// eachUsualKin calls f with each usual key that is related to w, maybe repeatedly.
func (r *ruleWatch) eachUsualKin(w *watched, f func(*watched)) {
	if !r.combines {
		for _, u := range r.hot {
			if u.usual && r.parse(u) && u.isApart(w) {
				f(u)
			}
		}
		return
	}
	for g := range r.hotGenerals(w) {
		if g.usual {
			f(g)
		}
	}
	for _, both := range w.specifics {
		if both.usual {
			f(both)
		}
		for g, how := range r.hotGenerals(both) {
			if g != w {
				continue
			}
			for u, other := range r.hotGenerals(both) {
				if u.usual && how.set|other.set == 1<<len(both.params)-1 {
					f(u)
				}
			}
		}
	}
	for _, u := range r.hot {
		if u.usual && u.byShare && u.isApart(w) {
			f(u)
		}
	}
}

// isApart reports whether two keys belong to the same route and have no parameter name in
// common.
func (w *watched) isApart(other *watched) bool {
	if w.route != other.route {
		return false
	}
	for _, p := range w.params {
		for _, q := range other.params {
			if nameOf(p) == nameOf(q) {
				return false
			}
		}
	}
	return true
}
