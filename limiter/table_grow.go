package limiter

import (
	"math/bits"
	"sync/atomic"
)

// A table has room for the heads that it needs when it is full. It uses as many as suit the
// keys that it holds, so that memory that is read often lies close together. It grows by linear
// hashing (Litwin, 1980): by one head at a time, whose keys come from the one chain that they
// would be in without it. So no call waits until all keys are moved. It does not shrink.
//
// A reader that meets a chain while it is parted may miss some of its keys. It looks for them
// again under the lock, as for any key that it does not find.

const (
	// headsPerLine is the number of heads in a line of the cache.
	headsPerLine = 8
	// headsPerKey keeps chains short.
	headsPerKey = 2
	// growAtOnce is the maximum number of heads that a new key adds. It is more than
	// headsPerKey, so that a table that could not grow for a while catches up.
	growAtOnce = 4
)

// head returns the head of a hash's chain.
func (t *table) head(hash uint64) *atomic.Pointer[keyNode] { return &t.heads[t.headIndex(hash)] }

func (t *table) headIndex(hash uint64) uint64 {
	used := t.used.Load()
	mask := uint64(1)<<(bits.Len64(used-1)&63) - 1
	index := hash & mask
	if index >= used { // that head is not in use yet
		index &= mask >> 1
	}
	return index
}

// stripe returns the stripe of a hash, which stays the same while the table grows.
func (t *table) stripe(hash uint64) *stripe {
	return &t.stripes[hash/headsPerLine&uint64(len(t.stripes)-1)]
}

// usedBy returns how many of the heads of a stripe are used.
func (t *table) usedBy(s *stripe) uint64 {
	used, row := t.used.Load(), uint64(headsPerLine*len(t.stripes))
	last := used%row - min(used%row, headsPerLine*s.index)
	return used/row*headsPerLine + min(last, headsPerLine)
}

// headOf returns the i-th head of a stripe.
func (t *table) headOf(s *stripe, i uint64) *atomic.Pointer[keyNode] {
	line := i/headsPerLine*uint64(len(t.stripes)) + s.index
	return &t.heads[line*headsPerLine+i%headsPerLine]
}

// link returns the link to a node that is in the chain of its hash, under the stripe's lock.
func (t *table) link(hash uint64, n *keyNode) *atomic.Pointer[keyNode] {
	link := t.head(hash)
	for link.Load() != n {
		link = &link.Load().next
	}
	return link
}

// grow adds some heads if there are few for the keys that are held. The caller holds the lock
// of its own stripe. A head of another stripe whose lock is taken is left to another caller.
func (t *table) grow(locked *stripe) {
	want := min(uint64(max(t.held.Load(), 0))*headsPerKey, uint64(len(t.heads)))
	for range growAtOnce {
		used := t.used.Load()
		if used >= want {
			return
		}
		s := t.stripe(used)
		if s != locked && !s.mu.TryLock() {
			return
		}
		if t.used.Load() == used && t.walks.Load() == 0 { // it changes under this lock alone
			t.splitHead(used)
			t.used.Store(used + 1)
		}
		if s != locked {
			s.mu.Unlock()
		}
	}
}

// splitHead moves the nodes that belong to a new head there, from the chain that they are in. Their
// order stays.
func (t *table) splitHead(head uint64) {
	bit := uint64(1) << (bits.Len64(head) - 1)
	stay, move := &t.heads[head-bit], &t.heads[head]
	for n := stay.Load(); n != nil; {
		next := n.next.Load()
		link := &stay
		if uint64(n.hash)&bit != 0 {
			link = &move
		}
		if (*link).Load() != n {
			(*link).Store(n)
		}
		*link = &n.next
		n = next
	}
	for _, last := range []*atomic.Pointer[keyNode]{stay, move} {
		if last.Load() != nil {
			last.Store(nil)
		}
	}
}
