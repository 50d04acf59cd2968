package hotkeys

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/hotparam/hotparam"
)

// desired is the set that ought to be in Redis: at most cap keys, those with
// the highest rates. As many again may wait for a place, so that a key that
// found the set full is published once another cools. Not safe for concurrent
// use.
type desired struct {
	cap      int
	known    map[string]hotparam.Hot // by member
	cooled   map[string]struct{}     // what was known and is no more, for a take-over
	overflow uint64                  // keys that found the set full
}

// terms are what of an entry makes a change when it differs; rates do not.
type terms struct {
	since int64 // unix milliseconds
	limit hotparam.Rate
	burst int64
	mode  hotparam.Mode
}

func termsOf(h hotparam.Hot) terms {
	return terms{since: h.Since.UnixMilli(), limit: h.Limit, burst: h.Burst, mode: h.Mode}
}

func (d *desired) set(h hotparam.Hot) {
	member := h.Key.String()
	if _, ok := d.known[member]; !ok && len(d.known) >= d.cap {
		d.overflow++
	}
	d.known[member] = h
	delete(d.cooled, member)
	if len(d.known) > 2*d.cap {
		d.trim()
	}
}

func (d *desired) remove(key hotparam.Key) {
	member := key.String()
	delete(d.known, member)
	if len(d.cooled) >= 2*d.cap {
		clear(d.cooled) // they are left to fade
	}
	d.cooled[member] = struct{}{}
}

// agree tells whether a published key is known here, too; then it has been hot
// since it was published.
func (d *desired) agree(member string, since time.Time) bool {
	h, ok := d.known[member]
	if ok {
		h.Since = since
		d.known[member] = h
	}
	return ok
}

// refresh takes the current counts of a key that is known, and where they come
// from unless that is not known now.
func (d *desired) refresh(h hotparam.Hot) {
	member := h.Key.String()
	if old, ok := d.known[member]; ok {
		old.Low, old.High, old.Rate = h.Low, h.High, h.Rate
		if h.Top != nil {
			old.Top = h.Top
		}
		d.known[member] = old
	}
}

// trim forgets the lowest of those that wait, down to half as many as may, so
// that a flood of hot keys sorts only once in cap/2 keys.
func (d *desired) trim() {
	for _, member := range d.ranked()[d.cap+d.cap/2:] {
		delete(d.known, member)
	}
}

// ranked is all members, the highest rate first.
func (d *desired) ranked() []string {
	members := slices.Collect(maps.Keys(d.known))
	slices.SortFunc(members, func(a, b string) int {
		return cmp.Or(cmp.Compare(d.known[b].Rate, d.known[a].Rate), cmp.Compare(a, b))
	})
	return members
}

func (d *desired) waiting() int { return max(0, len(d.known)-d.cap) }

// top is a copy of the set that ought to be published.
func (d *desired) top() map[string]hotparam.Hot {
	if d.waiting() == 0 {
		return maps.Clone(d.known)
	}
	top := make(map[string]hotparam.Hot, d.cap)
	for _, member := range d.ranked()[:d.cap] {
		top[member] = d.known[member]
	}
	return top
}
