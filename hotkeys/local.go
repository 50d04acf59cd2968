package hotkeys

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam"
)

// Entry is a hot key in a snapshot. It is read, never changed.
type Entry[P any] struct {
	Hot     hotparam.Hot
	Payload P
	member  string
	hash    uint64 // of the member
}

// LocalConfig says what else a [Local] does.
type LocalConfig[P any] struct {
	// KeepFor tells for how long the payload of a key that cooled is kept: a
	// limiter's time to full, so that a key which comes back within it does
	// not find a fresh burst. Nil: payloads are not kept.
	KeepFor func(P) time.Duration
	// MaxCooled bounds how many payloads are kept so; of more, those that
	// could be forgotten soonest are. Default 4,096.
	MaxCooled int
	// MaxMarks bounds how many keys are marked at a time. Default 4,096: as many as a
	// collector counts exactly, so that it has a place for each that it finds hot. It
	// tells a key once, and a mark that was refused would never be made.
	MaxMarks int
	// OnSwap is called after each new snapshot, with what is hot now,
	// published or marked. Calls do not overlap; it must be quick, must not
	// change the Local, and must not keep or change the slice.
	OnSwap func(version string, hot []hotparam.Hot)
	// OnFleet is called when the aggregator has told something new of the
	// fleet. Calls do not overlap; it must be quick. The suspects are its own.
	OnFleet func(hotparam.Fleet)
}

// Defaults of a [LocalConfig].
const (
	defaultMaxCooled = 4096 // four times what one publisher publishes
	defaultMaxMarks  = 4096 // collector.maxLocals
)

// Local is the hot set as this process sees it: an immutable snapshot that the
// request path reads with one atomic load, and that is replaced as a whole. It
// holds the keys that are published, and beside them those that this process
// marked because it alone has found them hot; what is published of a key counts
// before a mark. Each hot key carries a payload, such as its limiter, which
// stays with it from snapshot to snapshot. Safe for concurrent use.
type Local[P any] struct {
	fill func(h hotparam.Hot, old P, had bool) P
	cfg  LocalConfig[P]

	table atomic.Pointer[table[P]]

	mu      sync.Mutex // guards the rest, which only writers use
	version string     // of what is published
	entries map[string]*Entry[P]
	marks   map[string]hotparam.Hot // by member, also while they are published
	refused uint64                  // marks that found no room
	cooled  map[string]cooled[P]
	changed []*Entry[P] // put or dropped since the last snapshot
}

type cooled[P any] struct {
	payload P
	until   time.Time
}

// NewLocal gives an empty hot set. fill makes the payload of a key that became
// hot; for one that stays hot with other counts or another limit, or comes back
// within its KeepFor, had is true and old is the payload that it had. fill must
// not use the Local.
func NewLocal[P any](fill func(h hotparam.Hot, old P, had bool) P, cfg LocalConfig[P]) *Local[P] {
	if cfg.MaxCooled <= 0 {
		cfg.MaxCooled = defaultMaxCooled
	}
	if cfg.MaxMarks <= 0 {
		cfg.MaxMarks = defaultMaxMarks
	}
	l := &Local[P]{
		fill:    fill,
		cfg:     cfg,
		entries: make(map[string]*Entry[P]),
		marks:   make(map[string]hotparam.Hot),
		cooled:  make(map[string]cooled[P]),
	}
	l.table.Store(newTable(l.entries))
	return l
}

// Lookup finds a hot key by [hotparam.Hash] of its member ([hotparam.Key.String]);
// nil: it is not hot. It neither allocates nor waits.
func (l *Local[P]) Lookup(hash uint64, member []byte) *Entry[P] {
	return l.table.Load().lookup(hash, member)
}

// Replace makes exactly these keys the published ones. The version is passed on
// to OnSwap.
func (l *Local[P]) Replace(version string, hot []hotparam.Hot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	published := make(map[string]struct{}, len(hot))
	for _, h := range hot {
		h.Local = false
		published[l.put(h, now)] = struct{}{}
	}
	for member, e := range l.entries {
		if _, ok := published[member]; !ok && !e.Hot.Local {
			l.drop(member, now)
		}
	}
	l.version = version
	l.swap(now)
}

// Update makes a change to the published keys, at the cost of what changes and of
// a copy of the table.
func (l *Local[P]) Update(version string, change hotparam.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for _, h := range change.Hot {
		h.Local = false
		l.put(h, now)
	}
	for _, h := range change.Cool {
		member := h.Key.String()
		if e, ok := l.entries[member]; ok && !e.Hot.Local {
			l.drop(member, now)
		}
	}
	l.version = version
	l.swap(now)
}

// Mark makes a key hot that this process alone has found so, until Unmark. While
// it is published that counts, and the mark is in force again when it is
// published no longer. A mark that is one too many is counted and not made.
func (l *Local[P]) Mark(h hotparam.Hot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	member := h.Key.String()
	if _, ok := l.marks[member]; !ok && len(l.marks) >= l.cfg.MaxMarks {
		l.refused++
		return
	}
	h.Local = true
	l.marks[member] = h
	if e, ok := l.entries[member]; ok && (!e.Hot.Local || e.Hot == h) {
		return
	}
	now := time.Now()
	l.put(h, now)
	l.swap(now)
}

// Unmark takes a mark back.
func (l *Local[P]) Unmark(key hotparam.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	member := key.String()
	delete(l.marks, member)
	if e, ok := l.entries[member]; ok && e.Hot.Local {
		now := time.Now()
		l.drop(member, now)
		l.swap(now)
	}
}

// Marks tells how many keys are marked, published or not, and how many marks
// found no room since the start.
func (l *Local[P]) Marks() (marked int, refused uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.marks), l.refused
}

// Fleet passes on what the aggregator tells of the fleet.
func (l *Local[P]) Fleet(f hotparam.Fleet) {
	if l.cfg.OnFleet != nil {
		l.cfg.OnFleet(f)
	}
}

// put makes an entry of a key, with the payload that it has, or had before it
// cooled not long ago. It gives the key's member.
func (l *Local[P]) put(h hotparam.Hot, now time.Time) string {
	member := h.Key.String()
	old, had := l.entries[member]
	if had && old.Hot == h {
		return member
	}
	e := &Entry[P]{Hot: h, member: member}
	if had {
		e.hash = old.hash
		e.Payload = l.fill(h, old.Payload, true)
	} else {
		c, kept := l.cooled[member]
		delete(l.cooled, member)
		if !now.Before(c.until) {
			c, kept = cooled[P]{}, false
		}
		e.hash = hotparam.Hash([]byte(member))
		e.Payload = l.fill(h, c.payload, kept)
	}
	l.entries[member] = e
	l.changed = append(l.changed, e)
	return member
}

// drop ends an entry: the mark of its key takes its place, or it cools.
func (l *Local[P]) drop(member string, now time.Time) {
	if mark, ok := l.marks[member]; ok {
		l.put(mark, now)
		return
	}
	e := l.entries[member]
	delete(l.entries, member)
	l.changed = append(l.changed, e)
	if l.cfg.KeepFor != nil {
		l.cooled[member] = cooled[P]{payload: e.Payload, until: now.Add(l.cfg.KeepFor(e.Payload))}
	}
}

// swap puts what is hot now in place.
func (l *Local[P]) swap(now time.Time) {
	l.forget(now)
	l.table.Store(l.table.Load().with(l.entries, l.changed))
	clear(l.changed) // what was dropped is not to be kept alive
	l.changed = l.changed[:0]
	if l.cfg.OnSwap == nil {
		return
	}
	hot := make([]hotparam.Hot, 0, len(l.entries))
	for _, e := range l.entries {
		hot = append(hot, e.Hot)
	}
	l.cfg.OnSwap(l.version, hot)
}

// forget ends the payloads of cooled keys whose time is over, and those that are
// too many.
func (l *Local[P]) forget(now time.Time) {
	for member, c := range l.cooled {
		if !now.Before(c.until) {
			delete(l.cooled, member)
		}
	}
	excess := len(l.cooled) - l.cfg.MaxCooled
	if excess <= 0 {
		return
	}
	members := slices.SortedFunc(maps.Keys(l.cooled), func(a, b string) int {
		return cmp.Or(l.cooled[a].until.Compare(l.cooled[b].until), cmp.Compare(a, b))
	})
	for _, member := range members[:excess] {
		delete(l.cooled, member)
	}
}

// All is what is hot now, published or marked, the highest rate first.
func (l *Local[P]) All() []hotparam.Hot {
	var hot []hotparam.Hot
	for _, s := range l.table.Load().slots {
		if s.hash != 0 {
			hot = append(hot, s.entry.Hot)
		}
	}
	sortByRate(hot)
	return hot
}
