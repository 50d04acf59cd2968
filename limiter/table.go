package limiter

import (
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// table is a bounded hash table of the state that a limiter keeps for each key. Its chains are
// read without a lock and changed under the lock of their stripe.
//
// A reader may find a key while it is dropped. The kept value resolves that: it is marked as
// gone before it leaves its chain. So a take either comes first, and the key stays, or sees
// that it is gone and looks again under the lock. The alternative, a map and a lock for each
// shard, makes every caller wait for the hottest key's lock.
//
// There is no sweep in the background. New keys sweep a part of the table as they enter. If
// none arrive, the calls for known keys do, one call in each pace.
//
// For each new key a full table evicts one of the keys that it sweeps: the one whose debt is
// paid first. The stripe's debts keep the debt. So an evicted key begins with the debt that it
// had, and other keys are worse off only by the chance that sketch states.
type table struct {
	heads   []atomic.Pointer[keyNode] // fixed; a power of two, at least max
	stripes []stripe                  // a power of two
	max     int64
	seed    maphash.Seed // seed of the hashes in debts
	held    atomic.Int64

	pace  int64        // ns between two looks
	swept atomic.Int64 // time of the last look
	turn  atomic.Int64

	evicted   atomic.Uint64
	displaced atomic.Uint64
	inherited atomic.Uint64
}

// cannotEvict is the instant at which a key that cannot be evicted now counts as equal to a new
// one.
const cannotEvict = math.MaxInt64

// stripe is a part of the heads under one lock.
type stripe struct {
	heads []atomic.Pointer[keyNode] // fixed
	mu    sync.Mutex
	hand  int // the next of the heads to sweep
	// floor is the latest instant at which a key was dropped. All dropped states equalled new
	// ones by then. So a bucket that starts with this word has no more tokens than one that may
	// have been dropped before it, even if the clock goes back.
	floor int64
	debts *debts  // debts of evicted keys; nil before the first eviction, and again once all is paid
	_     [8]byte // a cache line of its own
}

const (
	maxStripes     = 64
	headsPerStripe = 64 // at least, unless there is only one stripe
)

// A new key sweeps this number of heads: a bounded amount of work, whatever the flood. Two for
// each arrival cover the table while half as many keys arrive as it has room for. A full table
// is worth a longer look.
const (
	lookAlways = 2
	lookFull   = 16
)

// Without new keys the whole table is swept each sweepRound, in looks that take some
// microseconds.
const (
	lookIdle   = 512 // heads
	lookBehind = 16  // looks
	sweepRound = 30 * time.Second
)

// maxMaxKeys prevents a typing error from reserving all memory.
const maxMaxKeys = 1 << 24

func newTable(maxKeys int) (*table, error) {
	if maxKeys < 1 || maxKeys > maxMaxKeys {
		return nil, fmt.Errorf("limiter: maxKeys %d: must be 1 to %d", maxKeys, maxMaxKeys)
	}
	t := &table{max: int64(maxKeys), seed: maphash.MakeSeed()}
	t.heads = make([]atomic.Pointer[keyNode], 1<<bits.Len(uint(maxKeys-1)))
	t.stripes = make([]stripe, min(max(len(t.heads)/headsPerStripe, 1), maxStripes))
	run := len(t.heads) / len(t.stripes)
	for i := range t.stripes {
		t.stripes[i].heads = t.heads[i*run : (i+1)*run]
	}
	t.pace = int64(sweepRound) * int64(min(run, lookIdle)) / int64(len(t.heads))
	return t, nil
}

func (t *table) full() bool { return t.held.Load() >= t.max }

func (t *table) stats() Stats {
	return Stats{Keys: t.held.Load(), Evicted: t.evicted.Load(), Displaced: t.displaced.Load(), Inherited: t.inherited.Load()}
}

// head returns the head of a hash's chain.
func (t *table) head(hash uint64) *atomic.Pointer[keyNode] {
	return &t.heads[hash&uint64(len(t.heads)-1)]
}

// stripe returns the stripe of a hash.
func (t *table) stripe(hash uint64) *stripe {
	return &t.stripes[hash&uint64(len(t.heads)-1)/uint64(len(t.heads)/len(t.stripes))]
}

// link returns the link to a node that is in the chain of its hash, under the stripe's lock.
func (t *table) link(hash uint64, n *keyNode) *atomic.Pointer[keyNode] {
	link := t.head(hash)
	for link.Load() != n {
		link = &link.Load().next
	}
	return link
}

// findNode returns the node of a key, or nil. It needs no lock. It sees every key that was added
// before and not dropped since. Under the lock of the hash's stripe, the result is not gone
// either.
func (t *table) findNode(hash uint64, key []byte) *keyNode {
	for n := t.head(hash).Load(); n != nil; n = n.next.Load() {
		if n.hasKey(hash, key) {
			return n
		}
	}
	return nil
}

// findNamed is like findNode, for the key named(name, key).
func (t *table) findNamed(hash uint64, name, key string) *keyNode {
	for n := t.head(hash).Load(); n != nil; n = n.next.Load() {
		if n.isNamed(hash, name, key) {
			return n
		}
	}
	return nil
}

// makeRoom makes room for a new key, after sweeping a little. It returns false if none of the keys
// that it has looked at can be evicted just now. The caller then adds the new key's debt to the
// debts. The caller holds the lock of the stripe, and adds the key.
func (t *table) makeRoom(s *stripe, now int64) bool {
	look := lookAlways
	if t.full() {
		look = lookFull
	}
	first := t.sweep(s, now, look)
	if t.held.Add(1) <= t.max {
		return true
	}
	t.displaced.Add(1)
	if first != nil && t.evict(s, first, now) {
		t.remove(uint64(first.hash), first)
		return true
	}
	t.held.Add(-1)
	return false
}

// owed returns the debt of a key that is not in the table, and whether there is one. The caller
// holds the lock of the stripe.
func (t *table) owed(s *stripe, hash uint64, now int64) (debt, bool) {
	owed, found := s.debts.findDebt(hash, now)
	if found {
		t.inherited.Add(1)
	}
	return owed, found
}

// settleDebts advances the debts of a stripe to now, and drops them once all is paid.
func (s *stripe) settleDebts(now int64) *debts {
	d := s.debts
	if d == nil {
		return nil
	}
	d.tick(now)
	if d.until <= d.last && d.marks <= d.last {
		s.floor = max(s.floor, d.last)
		s.debts = nil
	}
	return s.debts
}

// debtsFor is like settleDebts, for an eviction: it makes the debts if there are none.
func (t *table) debtsFor(s *stripe, now int64) *debts {
	if s.settleDebts(now) == nil {
		s.debts = newDebts(len(s.heads))
		s.debts.last = now
	}
	s.floor = max(s.floor, now) // paid debts may be forgotten
	return s.debts
}

// indebted returns how many evicted keys owe something.
func (t *table) indebted(now int64) (n int) {
	t.eachDebts(func(d *debts) { n += d.count(now) })
	return n
}

// eachDebts calls f for the debts of each stripe, with its lock held.
func (t *table) eachDebts(f func(d *debts)) {
	for i := range t.stripes {
		s := &t.stripes[i]
		s.mu.Lock()
		if s.debts != nil {
			f(s.debts)
		}
		s.mu.Unlock()
	}
}

// insert adds a new key, for which there is room, under the lock of its stripe. The key comes last
// in its chain: keys that are asked for often are mostly the first to come, and are found
// first.
func (t *table) insert(hash uint64, n *keyNode) {
	link := t.head(hash)
	for other := link.Load(); other != nil; other = link.Load() {
		link = &other.next
	}
	link.Store(n)
}

// replace replaces a node, under the lock of their stripe.
func (t *table) replace(hash uint64, old, replacement *keyNode) {
	replacement.next.Store(old.next.Load())
	t.link(hash, old).Store(replacement)
}

// remove removes a node, under the lock of its stripe.
func (t *table) remove(hash uint64, n *keyNode) {
	t.link(hash, n).Store(n.next.Load())
	t.held.Add(-1)
}

// sweep drops the keys under the stripe's next heads that equal new ones at now. It returns the
// first of the other keys that will, or nil. The caller holds the stripe's lock.
func (t *table) sweep(s *stripe, now int64, heads int) (first *keyNode) {
	s.settleDebts(now)
	dropped, least := 0, int64(cannotEvict)
	for range min(heads, len(s.heads)) {
		link := &s.heads[s.hand]
		for n := link.Load(); n != nil; n = link.Load() {
			gone, until := dropFresh(&n.kept, now)
			if !gone {
				if until < least {
					first, least = n, until
				}
				link = &n.next
				continue
			}
			link.Store(n.next.Load())
			dropped++
		}
		s.hand = (s.hand + 1) % len(s.heads)
	}
	if dropped > 0 {
		s.floor = max(s.floor, now)
		t.held.Add(-int64(dropped))
		t.evicted.Add(uint64(dropped))
	}
	return first
}

// due reports whether it is time for another look by tend.
func (t *table) due(now int64) bool {
	since := now - t.swept.Load()
	return since >= t.pace || since < -maxBack
}

// tend sweeps a part of the table if it is time to. New keys sweep as they enter, but without
// them idle keys would stay.
func (t *table) tend(now time.Duration) {
	if when := instant(now); t.due(when) {
		t.sweepNext(when)
	}
}

// sweepNext sweeps the next part of the table. One caller does it while the others continue. It
// makes up for some of the looks that were due and that no caller made.
func (t *table) sweepNext(now int64) {
	last := t.swept.Load()
	next := max(last+t.pace, now-lookBehind*t.pace)
	if last-now > maxBack {
		next = now // the clock was reset
	}
	if !t.due(now) || !t.swept.CompareAndSwap(last, next) {
		return
	}
	s := &t.stripes[uint64(t.turn.Add(1))%uint64(len(t.stripes))]
	if s.mu.TryLock() {
		t.sweep(s, now, lookIdle)
		s.mu.Unlock()
	}
}

// sweepAll sweeps the whole table.
func (t *table) sweepAll(now int64) {
	for i := range t.stripes {
		s := &t.stripes[i]
		s.mu.Lock()
		t.sweep(s, now, len(s.heads))
		s.mu.Unlock()
	}
}

// each calls f for every node until f returns false. A node may be dropped during the call.
func (t *table) each(f func(*keyNode) bool) {
	for i := range t.heads {
		for n := t.heads[i].Load(); n != nil; n = n.next.Load() {
			if !f(n) {
				return
			}
		}
	}
}
