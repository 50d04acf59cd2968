package hotkeys

import (
	"cmp"
	"maps"
	"slices"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// wanted is a hot key that has a place in the published set, or waits for one.
type wanted struct {
	published.Hot
	member string
	placed bool // whether it has a place
	waits  bool // whether it has been counted in Overflow
}

// limited reports whether the key's requests are limited, and not just watched.
func (w *wanted) limited() bool {
	return w.Mode != rules.ModeShadow && w.Mode != rules.ModeWatch
}

// strength returns the ratio of the key's count to its threshold, by which keys compete. It is
// doubled for a key with a place: otherwise two keys of about the same ratio would take turns
// with each refresh.
func (w *wanted) strength() float64 {
	if w.placed {
		return 2 * w.Ratio
	}
	return w.Ratio
}

// compareWanted orders keys by their claim to a place, the best first: limited keys
// before others, then by strength. The member breaks ties, so that the result does not
// depend on the order of a map.
func compareWanted(a, b *wanted) int {
	order := cmp.Or(-base.CompareBool(a.limited(), b.limited()), -cmp.Compare(a.strength(), b.strength()), -base.CompareBool(a.placed, b.placed))
	if order == 0 {
		return cmp.Compare(a.member, b.member)
	}
	return order
}

// placeClass is the first criterion of the order of keys, before their strengths.
type placeClass int

// Keys within their rule's guaranteed share come before keys that borrow places that
// other rules do not need. Limited keys come before all others, whatever their share: a
// key that is only watched never displaces a limited one.
const (
	dueLimited placeClass = iota
	lentLimited
	dueOther
	lentOther
	groups
)

// guarantee is a rule's share of the places, with the result of the last rank.
type guarantee struct {
	share   int     // guaranteed places
	due     int     // keys of the rule that are within its share
	weakest *wanted // the last of those keys
}

// newGuarantees returns the guarantees of rules that share places equally.
func newGuarantees(places int, rules []string) map[string]*guarantee {
	shares := make(map[string]*guarantee, len(rules))
	for _, rule := range rules {
		shares[rule] = &guarantee{share: places / len(rules)}
	}
	return shares
}

// rank orders keys by their claim to a place, the best first. It records in shares which keys of
// each rule are within its share. A rule without an entry there has none.
func rank(keys []*wanted, shares map[string]*guarantee) []ranked {
	for _, g := range shares {
		g.due, g.weakest = 0, nil
	}
	slices.SortFunc(keys, compareWanted)
	var sorted [groups][]ranked
	for _, w := range keys {
		in := lentLimited
		if g := shares[w.Rule]; g != nil && g.due < g.share {
			in = dueLimited
			g.due, g.weakest = g.due+1, w
		}
		if !w.limited() {
			in += dueOther
		}
		sorted[in] = append(sorted[in], ranked{w, in})
	}
	return slices.Concat(sorted[:]...)
}

// ranked is a key with the group in which it competes.
type ranked struct {
	*wanted
	group placeClass
}

// isAhead reports whether w would come before other. other was ranked and w was not. shares are
// in the state in which rank left them.
func (w *wanted) isAhead(other *ranked, shares map[string]*guarantee) bool {
	in := lentLimited
	if g := shares[w.Rule]; g != nil && (g.due < g.share || g.weakest != nil && compareWanted(w, g.weakest) <= 0) {
		in = dueLimited
	}
	if !w.limited() {
		in += dueOther
	}
	return in < other.group || in == other.group && compareWanted(w, other.wanted) < 0
}

// Reload sets the ids of the rules that share the places, as in [PublisherConfig.Rules]. Keys of
// other rules cool at once, and their places go to keys that wait. It does not block.
func (p *Publisher) Reload(rules []string) {
	p.mu.Lock()
	changed := p.desired.reload(rules)
	p.suspected.shares = newSuspected(rules).shares
	p.mu.Unlock()
	if changed {
		base.Notify(p.wake)
	}
}

// reload divides the places between the given rules, and removes the keys of rules that are no
// longer among them. It reports whether the set to publish may have changed.
func (d *desired) reload(all []string) (changed bool) {
	was := d.shares
	d.shares = newGuarantees(d.cap, all)
	isGone := func(rule string) bool { return was[rule] != nil && d.shares[rule] == nil }
	var gone []rules.Key
	for _, w := range d.known {
		if isGone(w.Rule) {
			gone = append(gone, w.Key)
		}
	}
	for _, key := range gone {
		d.remove(key)
	}
	maps.DeleteFunc(d.overflow, func(rule string, _ uint64) bool { return isGone(rule) })
	for _, part := range d.reported {
		maps.DeleteFunc(part.hot, func(rule string, _ int) bool { return isGone(rule) })
	}
	d.stale = true
	return d.changed()
}
