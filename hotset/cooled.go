package hotset

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// cooled is the payload of a key that is no longer hot.
type cooled[P any] struct {
	payload P
	until   time.Time
}

// keepCooled keeps the payload of an entry that cooled for its KeepFor.
func (s *Set[P]) keepCooled(e *Entry[P], now time.Time) {
	if s.cfg.KeepFor != nil {
		s.cooled[e.member] = cooled[P]{payload: e.Payload, until: now.Add(s.cfg.KeepFor(e.Payload))}
	}
}

// takeCooled returns the payload that is kept for a key that is hot again, and stops keeping it.
func (s *Set[P]) takeCooled(member string, now time.Time) (payload P, kept bool) {
	c, ok := s.cooled[member]
	delete(s.cooled, member)
	if !ok || !now.Before(c.until) {
		return payload, false
	}
	return c.payload, true
}

// evictCooled removes expired payloads and those beyond maxCooled.
func (s *Set[P]) evictCooled(now time.Time) {
	for member, c := range s.cooled {
		if !now.Before(c.until) {
			delete(s.cooled, member)
		}
	}
	excess := len(s.cooled) - s.maxCooled
	if excess <= 0 {
		return
	}
	members := slices.SortedFunc(maps.Keys(s.cooled), func(a, b string) int {
		return cmp.Or(s.cooled[a].until.Compare(s.cooled[b].until), cmp.Compare(a, b))
	})
	for _, member := range members[:excess] {
		delete(s.cooled, member)
	}
}
