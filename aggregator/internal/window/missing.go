package window

import (
	"math"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/decode"
)

// Missing records counts that were lost in transit (see the package's words): how many of any key
// a window may lack, and which keys lack none. It covers all rules of a detector, since senders
// report their sums for all rules.
//
// The counts of a key in a lost packet become known from the key's account. They are then
// counted at the earliest possible time. A window that ends now and holds that time has them
// for certain. A window that begins in between may have them, and does not count them. A window
// that ended in between counts them, and may not have them.
type Missing struct {
	gaps    [maxMissing]missingGap // ring of gaps; the id of an unused one is 0
	next    int
	used    int // number of used gaps in the ring
	byID    map[uint64]int
	keys    map[MissingKey]*missingOf
	joint   map[*decode.Joint]*jointBound // joint bounds by the Joint that gaps report
	swept   time.Time
	from    int64           // gaps up to this instant may have been dropped
	leftOut map[uint64]bool // gaps that are left out of sums, by ID

	asked     uint64   // number of sums over gaps so far
	lastOwnID uint64   // last ID of a gap that no decoder reported, counted down from the highest
	changes   int64    // number of changes so far
	last      lossSums // last result of lossOfAny
}

type missingGap struct {
	id            uint64
	merged        []uint64 // IDs of the gaps that it replaced; nil if it is not merged
	from, to      int64    // first and last instant of the gap, in ns since the Unix epoch
	loose, booked int64
	heldBack      int64                          // missing held-back counts of groups
	byRule        *jointBound                    // nil if no bound by rule is known
	buckets       [decode.MaxBuckets]*jointBound // the first is nil if no bound by bucket is known
}

// MissingKey is a key of a rule, by its number.
type MissingKey struct {
	Hash uint64
	Rule int
}

// missingOf is the state of one key.
type missingOf struct {
	noLoose  [maxMissing / 64]uint64 // bit i: gap i lacks no loose count of the key
	noBooked [maxMissing / 64]uint64 // bit i: gap i lacks no booked count of the key, or these are counted
	healed   []healedCount
	newest   int64 // newest instant for which the state matters
}

// healedCount is a number of counts of a lost packet that a later total of the key's account made
// known. Their time is between from and to. If it is placed, the window counts them at from.
type healedCount struct {
	from, to, n int64
	placed      bool
}

const (
	// maxMissing bounds the gaps that are kept apart; it is a multiple of 64. If there are
	// more, the older ones are merged.
	maxMissing = 2048
	// maxMissingKeys bounds the keys with a state of their own, at some 600 bytes each.
	maxMissingKeys = 8192
	// maxHealed bounds the healed counts of a key that are kept apart.
	maxHealed = 64
)

// NewMissing returns an empty Missing.
func NewMissing() *Missing {
	return &Missing{last: lossSums{rule: -1}, byID: make(map[uint64]int), keys: make(map[MissingKey]*missingOf), joint: make(map[*decode.Joint]*jointBound), from: math.MinInt64}
}

// Add records a gap. If the gap is known, Add makes it smaller.
func (m *Missing) Add(g decode.Gap) {
	m.changes++
	if i, ok := m.byID[g.ID]; ok {
		x := &m.gaps[i]
		if x.id != g.ID { // it is part of a merged gap
			return
		}
		m.setJoints(x, &g)
		if x.loose, x.booked, x.heldBack = min(x.loose, g.Loose), min(x.booked, g.Booked), min(x.heldBack, g.HeldBack); x.loose+x.booked+x.heldBack == 0 {
			m.drop(x)
		}
		return
	}
	if g.Loose+g.Booked+g.HeldBack == 0 {
		return
	}
	for (m.used < maxMissing || m.makeRoom()) && m.gaps[m.next].id != 0 {
		m.next = (m.next + 1) % maxMissing
	}
	x := &m.gaps[m.next]
	if x.id != 0 {
		m.from = max(m.from, x.to)
		m.drop(x)
	}
	for _, k := range m.keys {
		k.noLoose[m.next/64] &^= 1 << (m.next % 64)
		k.noBooked[m.next/64] &^= 1 << (m.next % 64)
	}
	*x = missingGap{id: g.ID, from: g.From.UnixNano(), to: g.To.UnixNano(), loose: g.Loose, booked: g.Booked, heldBack: g.HeldBack}
	m.setJoints(x, &g)
	m.used++
	m.byID[g.ID] = m.next
	m.next = (m.next + 1) % maxMissing
}

// drop forgets a gap.
func (m *Missing) drop(x *missingGap) {
	m.setJoint(&x.byRule, nil)
	for i := range x.buckets {
		m.setJoint(&x.buckets[i], nil)
	}
	delete(m.byID, x.id)
	for _, id := range x.merged {
		delete(m.byID, id)
	}
	m.used--
	*x = missingGap{}
}

// ExcludeKey records that a gap lacks no loose counts of a key. counted reports whether the booked
// counts that the key lost in it have been counted too.
func (m *Missing) ExcludeKey(gap uint64, key MissingKey, counted bool) {
	i, ok := m.byID[gap]
	if !ok || m.gaps[i].id != gap {
		return
	}
	if k := m.stateOf(key, m.gaps[i].to); k != nil {
		k.noLoose[i/64] |= 1 << (i % 64)
		if counted {
			k.noBooked[i/64] |= 1 << (i % 64)
		}
		m.changes++
	}
}

// stateOf returns the state of a key, and adds it if there is room.
func (m *Missing) stateOf(key MissingKey, when int64) *missingOf {
	k := m.keys[key]
	if k == nil {
		if len(m.keys) >= maxMissingKeys && !m.evict() {
			return nil
		}
		k = &missingOf{newest: when}
		m.keys[key] = k
	}
	k.newest = max(k.newest, when)
	return k
}

// evict makes room for a key by forgetting another one without healed counts. It tries a few,
// and evicts the key that matters for the shortest time. The gaps that lacked nothing of
// this key then count for it again.
func (m *Missing) evict() bool {
	const looks = 16
	var victim MissingKey
	oldest, looked := int64(math.MaxInt64), 0
	for key, k := range m.keys {
		if len(k.healed) == 0 && k.newest < oldest {
			victim, oldest = key, k.newest
		}
		if looked++; looked == looks {
			break
		}
	}
	delete(m.keys, victim)
	return oldest < math.MaxInt64
}

// LeaveOut leaves the gaps with some IDs out of the loss of windows.
func (m *Missing) LeaveOut(gaps map[uint64]bool) {
	m.leftOut = gaps
	m.changes++
}

// Sweep forgets gaps and counts older than keep. It does so once a second, however often it is
// called.
func (m *Missing) Sweep(now time.Time, keep time.Duration) {
	if since := now.Sub(m.swept); 0 <= since && since < time.Second || m.isNothing() {
		return
	}
	m.swept = now
	m.changes++
	oldest := now.Add(-keep).UnixNano()
	if m.from < oldest {
		m.from = math.MinInt64
	}
	for i := range m.gaps {
		if x := &m.gaps[i]; x.id != 0 && x.to < oldest {
			m.drop(x)
		}
	}
	for key, k := range m.keys {
		if k.newest < oldest {
			delete(m.keys, key)
		}
		k.healed = slices.DeleteFunc(k.healed, func(h healedCount) bool { return h.to < oldest })
	}
}

// isNothing reports whether no loss is known, present or past.
func (m *Missing) isNothing() bool {
	return m == nil || m.used == 0 && len(m.keys) == 0 && m.from == math.MinInt64
}

// lossSums are the result of lossOfAny for a rule's window.
type lossSums struct {
	rule                int
	start, end, changes int64
	shortfall
}

// shortfall bounds the counts that a window of a rule may lack, of all keys together.
type shortfall struct {
	lacks         int64 // missing counts of any key, or [published.Unknown]
	heldBack      int64 // missing counts that were reported as held back of groups
	before, later int64 // healed counts: before are placed earlier and may belong to the window, later may be later than it
}
