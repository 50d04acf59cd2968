package hotkeys

import (
	"cmp"
	"slices"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/internal/cmpbool"
)

// wanted is a hot key that has a place in the published set, or waits for one.
type wanted struct {
	hotparam.Hot
	member string
	placed bool // has a place
	waits  bool // was counted as one that found no place, or lost its own
}

// limited reports whether the key's requests are held to a limit. The others only
// count what a limit would do, or watch.
func (w *wanted) limited() bool {
	return w.Mode != hotparam.ModeShadow && w.Mode != hotparam.ModeWatch
}

// strength is what keys compete by: how far they are over their thresholds, whatever
// those count. A key that has a place counts twice, or two keys of about the same
// ratio would take turns with each second's counts.
func (w *wanted) strength() float64 {
	if w.placed {
		return 2 * w.Ratio
	}
	return w.Ratio
}

// compareWanted orders keys by their claim to a place, the best first: keys that are
// limited before all others, then by strength. The text decides between equals, so
// that the result does not depend on the order of a map.
func compareWanted(a, b *wanted) int {
	order := cmp.Or(-cmpbool.Compare(a.limited(), b.limited()), -cmp.Compare(a.strength(), b.strength()), -cmpbool.Compare(a.placed, b.placed))
	if order == 0 {
		return cmp.Compare(a.member, b.member)
	}
	return order
}

// group is which keys come before which others, whatever their strengths.
type group int

// Keys within their rule's guaranteed part come before those that borrow what other
// rules do not use; and limited keys before all that are not, also before those within
// a guarantee: a key that only watches never displaces one that is limited.
const (
	dueLimited group = iota
	lentLimited
	dueOther
	lentOther
	groups
)

// guarantee is a rule's part of the places, as they were given out last.
type guarantee struct {
	share   int     // places that the rule's keys have before all others
	due     int     // of its keys, those within the share
	weakest *wanted // the last of them
}

// newGuarantees divides places equally between rules.
func newGuarantees(places int, rules []string) map[string]*guarantee {
	shares := make(map[string]*guarantee, len(rules))
	for _, rule := range rules {
		shares[rule] = &guarantee{share: places / len(rules)}
	}
	return shares
}

// rank orders keys by their claim to a place, the best first. It notes in shares
// which keys of each rule are within its share. A rule without an entry there has no
// share.
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
	group group
}

// isAhead reports whether a key that was not ranked would come before one that was, by
// the guarantees as of then.
func (w *wanted) isAhead(of *ranked, shares map[string]*guarantee) bool {
	in := lentLimited
	if g := shares[w.Rule]; g != nil && (g.due < g.share || g.weakest != nil && compareWanted(w, g.weakest) <= 0) {
		in = dueLimited
	}
	if !w.limited() {
		in += dueOther
	}
	return in < of.group || in == of.group && compareWanted(w, of.wanted) < 0
}
