package hotkeys

import (
	"cmp"
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
	// OnSwap is called after each new snapshot, with what is hot now. Calls
	// do not overlap; it must be quick, must not change the Local, and must
	// not keep or change the slice.
	OnSwap func(version string, hot []hotparam.Hot)
}

// defaultMaxCooled is four times what one publisher publishes.
const defaultMaxCooled = 4096

// Local is the hot set as this process sees it: an immutable snapshot that the
// request path reads with one atomic load, and that is replaced as a whole.
// Each hot key carries a payload, such as its limiter, which stays with it from
// snapshot to snapshot. Safe for concurrent use.
type Local[P any] struct {
	fill func(h hotparam.Hot, old P, had bool) P
	cfg  LocalConfig[P]

	table atomic.Pointer[table[P]]

	mu      sync.Mutex // guards the rest, which only writers use
	entries map[string]*Entry[P]
	cooled  map[string]cooled[P]
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
	l := &Local[P]{fill: fill, cfg: cfg, entries: make(map[string]*Entry[P]), cooled: make(map[string]cooled[P])}
	l.table.Store(newTable(l.entries, hotparam.Hash))
	return l
}

// Lookup finds a hot key by [hotparam.Hash] of its member ([hotparam.Key.String]);
// nil: it is not hot. It neither allocates nor waits.
func (l *Local[P]) Lookup(hash uint64, member []byte) *Entry[P] {
	return l.table.Load().lookup(hash, member)
}

// Replace makes exactly these keys hot. The version is passed on to OnSwap.
func (l *Local[P]) Replace(version string, hot []hotparam.Hot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replace(version, hot)
}

// Update makes a change to the hot set, where it comes from this very process
// and through no Redis.
func (l *Local[P]) Update(change hotparam.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := make(map[string]hotparam.Hot, len(l.entries)+len(change.Hot))
	for member, e := range l.entries {
		next[member] = e.Hot
	}
	for _, h := range change.Hot {
		next[h.Key.String()] = h
	}
	for _, h := range change.Cool {
		delete(next, h.Key.String())
	}
	hot := make([]hotparam.Hot, 0, len(next))
	for _, h := range next {
		hot = append(hot, h)
	}
	l.replace("", hot)
}

func (l *Local[P]) replace(version string, hot []hotparam.Hot) {
	now := time.Now()
	next := make(map[string]*Entry[P], len(hot))
	for _, h := range hot {
		member := h.Key.String()
		if old, ok := l.entries[member]; ok && old.Hot == h {
			next[member] = old
			continue
		}
		payload, had := l.payload(member, now)
		next[member] = &Entry[P]{Hot: h, Payload: l.fill(h, payload, had), member: member}
	}
	l.cool(next, now)
	l.entries = next
	l.table.Store(newTable(next, hotparam.Hash))
	if l.cfg.OnSwap != nil {
		l.cfg.OnSwap(version, hot)
	}
}

// payload is what the key has, or had before it cooled not long ago.
func (l *Local[P]) payload(member string, now time.Time) (payload P, had bool) {
	if e, ok := l.entries[member]; ok {
		return e.Payload, true
	}
	if c, ok := l.cooled[member]; ok && now.Before(c.until) {
		return c.payload, true
	}
	return payload, false
}

// cool keeps the payloads of the keys that are not in next any more, and
// forgets those whose time is over.
func (l *Local[P]) cool(next map[string]*Entry[P], now time.Time) {
	if l.cfg.KeepFor == nil {
		return
	}
	for member, e := range l.entries {
		if _, ok := next[member]; !ok {
			l.cooled[member] = cooled[P]{payload: e.Payload, until: now.Add(l.cfg.KeepFor(e.Payload))}
		}
	}
	for member, c := range l.cooled {
		if _, hot := next[member]; hot || !now.Before(c.until) {
			delete(l.cooled, member)
		}
	}
	if excess := len(l.cooled) - l.cfg.MaxCooled; excess > 0 {
		members := make([]string, 0, len(l.cooled))
		for member := range l.cooled {
			members = append(members, member)
		}
		slices.SortFunc(members, func(a, b string) int {
			return cmp.Or(l.cooled[a].until.Compare(l.cooled[b].until), cmp.Compare(a, b))
		})
		for _, member := range members[:excess] {
			delete(l.cooled, member)
		}
	}
}

// All is what is hot now, the highest rate first.
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
