package hotset

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// Writer is the side of a [Set] that follows the published set of hot keys. At first
// no key is hot.
type Writer interface {
	// Update applies a change to the published keys. Until is on the local clock. For keys that
	// cool, only Key need be set. version identifies the set after the change. Calls must not
	// overlap with each other or with those of UpdateFleet.
	Update(version string, change published.Change)
	// UpdateFleet sets the number of instances and the suspects, whenever either has
	// changed. The Writer may keep the slice.
	UpdateFleet(fleet published.Fleet)
}

// Entry is a hot key in a snapshot. It is read, never changed.
type Entry[P any] struct {
	Hot     published.Hot
	Payload P
	member  string
	hash    uint64 // hash of the member
}

// Config configures a [Set]. Its zero value is usable.
type Config[P any] struct {
	// KeepFor returns how long the payload of a key that cooled is kept. For a limiter it is the
	// time until its burst is full, so that a key that becomes hot again earlier does not get a
	// fresh burst. If nil, payloads are not kept.
	KeepFor func(P) time.Duration
	// OnSwap is called after each new snapshot, with all keys that are hot, published
	// or marked. Calls do not overlap. OnSwap must be quick, must not change the Set,
	// and must not keep or change the slice.
	OnSwap func(version string, hot []published.Hot)
	// OnFleet is called by [Set.UpdateFleet]. It must be quick. It may keep the
	// suspects.
	OnFleet func(published.Fleet)
}

const (
	// maxCooled bounds the number of payloads that are kept of cooled keys, to four times as many
	// as one publisher publishes. The payloads that expire first are evicted.
	maxCooled = 4096
	// maxMarks bounds the number of keys that are marked at a time. It is the number of keys that
	// a collector counts exactly (collector.maxLocalKeys), so there is room for each key that it
	// reports. It reports a key only once, so a refused mark would never be made.
	maxMarks = 4096
)

// Set is the set of hot keys of one process: the published keys, and the keys that this process
// has marked. Each hot key has a payload, such as its limiter, which it keeps from snapshot to
// snapshot. A Set implements [Writer]. It is safe for concurrent use.
type Set[P any] struct {
	fill func(h published.Hot, old P, had bool) P
	cfg  Config[P]

	maxCooled, maxMarks int

	snapshot atomic.Pointer[snapshot[P]]

	mu        sync.Mutex               // guards the rest, which only writers use
	version   string                   // version of the published set
	published map[string]published.Hot // published keys by member
	marks     map[string]published.Hot // marks by member, also while they are published
	pins      map[string]published.Hot // pins by member, also while they are published or marked
	entries   map[string]*Entry[P]     // what is in force of these
	refused   int64                    // number of marks for which there was no room
	cooled    map[string]cooled[P]
}

// New returns an empty set. fill returns the payload of a key that became hot or has changed. If
// the key was hot already, or becomes hot again within its KeepFor, had is true and old is its
// last payload. fill must not use the Set.
func New[P any](fill func(h published.Hot, old P, had bool) P, cfg Config[P]) *Set[P] {
	s := &Set[P]{
		fill:      fill,
		cfg:       cfg,
		published: make(map[string]published.Hot),
		marks:     make(map[string]published.Hot),
		entries:   make(map[string]*Entry[P]),
		cooled:    make(map[string]cooled[P]),

		maxCooled: maxCooled, maxMarks: maxMarks,
	}
	s.snapshot.Store(newSnapshot(s.entries))
	return s
}

// Lookup returns the entry of the key with this member ([rules.Key.String]), or nil if
// the key is not hot. hash is the member's [rules.Hash]. Lookup neither allocates nor
// blocks.
func (s *Set[P]) Lookup(hash uint64, member []byte) *Entry[P] {
	return s.snapshot.Load().lookup(hash, member)
}

// All returns the hot keys, published or marked, the highest rate first.
func (s *Set[P]) All() []published.Hot {
	var hot []published.Hot
	for _, p := range s.snapshot.Load().places {
		if p.hash != 0 {
			hot = append(hot, p.entry.Hot)
		}
	}
	SortByRate(hot)
	return hot
}

// SortByRate sorts keys by descending rate, and by key where rates are equal.
func SortByRate(hot []published.Hot) {
	slices.SortFunc(hot, func(a, b published.Hot) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), a.Key.Compare(b.Key))
	})
}

// Update implements [Writer].
func (s *Set[P]) Update(version string, change published.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, h := range change.Hot {
		h.Local = false
		member := h.Key.String()
		s.published[member] = h
		s.refresh(member, now)
	}
	for _, h := range change.Cool {
		member := h.Key.String()
		delete(s.published, member)
		s.refresh(member, now)
	}
	s.version = version
	s.swap(now)
}

// UpdateFleet implements [Writer].
func (s *Set[P]) UpdateFleet(fleet published.Fleet) {
	if s.cfg.OnFleet != nil {
		s.cfg.OnFleet(fleet)
	}
}

// Mark makes a key hot in this process until Unmark. While the key is published, the
// published entry is in force instead of the mark. A mark for which there is no room is not made,
// and is counted.
func (s *Set[P]) Mark(h published.Hot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	member := h.Key.String()
	if _, ok := s.marks[member]; !ok && len(s.marks) >= s.maxMarks {
		s.refused++
		return
	}
	h.Local = true
	s.marks[member] = h
	if now := time.Now(); s.refresh(member, now) {
		s.swap(now)
	}
}

// Unmark removes a mark.
func (s *Set[P]) Unmark(key rules.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	member := key.String()
	delete(s.marks, member)
	if now := time.Now(); s.refresh(member, now) {
		s.swap(now)
	}
}

// SetPins replaces the pinned keys. A pinned key is hot in this process even if it is neither
// published nor marked. If it is published or marked, that entry is in force instead of the pin,
// with Pinned set.
func (s *Set[P]) SetPins(pins []published.Hot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(pins) == 0 && len(s.pins) == 0 {
		return
	}
	now := time.Now()
	was := s.pins
	s.pins = make(map[string]published.Hot, len(pins))
	for _, h := range pins {
		h.Local = true
		member := h.Key.String()
		s.pins[member] = h
		s.refresh(member, now)
	}
	for member := range was {
		s.refresh(member, now)
	}
	s.swap(now)
}

// Payloads calls f for each payload and its key's member: the payloads of hot keys, and the kept
// ones of keys that cooled. f must not use the Set.
func (s *Set[P]) Payloads(f func(member string, payload P)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for member, c := range s.cooled {
		if now.Before(c.until) {
			f(member, c.payload)
		}
	}
	for member, e := range s.entries {
		f(member, e.Payload)
	}
}

// RefusedMarks returns the number of marks that were refused because there was no room.
func (s *Set[P]) RefusedMarks() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// refresh brings the entry of a key up to date, and reports whether it has changed: the published one
// is in force, or else the mark, or else the pin. A key without any cools. The entry keeps its payload,
// or gets the one that was kept since the key cooled.
func (s *Set[P]) refresh(member string, now time.Time) (changed bool) {
	pin, pinned := s.pins[member]
	h, hot := s.published[member]
	if !hot {
		h, hot = s.marks[member]
	}
	if !hot {
		h, hot = pin, pinned
	}
	h.Pinned = pinned
	old := s.entries[member]
	switch {
	case old == nil && !hot || old != nil && old.Hot == h:
		return false
	case !hot:
		delete(s.entries, member)
		s.keepCooled(old, now)
		return true
	}
	e := &Entry[P]{Hot: h, member: member}
	if old != nil {
		e.hash = old.hash
		e.Payload = s.fill(h, old.Payload, true)
	} else {
		e.hash = rules.Hash([]byte(member))
		payload, kept := s.takeCooled(member, now)
		e.Payload = s.fill(h, payload, kept)
	}
	s.entries[member] = e
	return true
}

// swap replaces the snapshot.
func (s *Set[P]) swap(now time.Time) {
	s.evictCooled(now)
	s.snapshot.Store(newSnapshot(s.entries))
	if s.cfg.OnSwap == nil {
		return
	}
	hot := make([]published.Hot, 0, len(s.entries))
	for _, e := range s.entries {
		hot = append(hot, e.Hot)
	}
	s.cfg.OnSwap(s.version, hot)
}
