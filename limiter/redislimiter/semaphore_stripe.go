package redislimiter

import (
	"container/heap"
	"hash/maphash"
	"sync"
)

// semaphoreStripes is the number of locks that the keys of a [Semaphore] share.
const semaphoreStripes = 64

// semaphoreStripe has the keys under one lock.
type semaphoreStripe struct {
	mu     sync.Mutex
	keys   map[string]*semaphoreState // by the key in Redis
	spares int                        // spare leases of all keys
	kept   int                        // keys that keep leases
	reused uint64                     // leases that passed from one request to another
}

// semaphoreState is the state of a key in this process. It exists while the key has waiters or keeps
// leases. The lock of its stripe guards it.
type semaphoreState struct {
	stripe *semaphoreStripe // fixed
	name   string           // key in Redis; fixed
	line
	keptLeases
}

// semaphoreSeed is that of the stripes' choice.
var semaphoreSeed = maphash.MakeSeed()

func (s *Semaphore) stripe(key string) *semaphoreStripe {
	return &s.stripes[maphash.String(semaphoreSeed, key)%semaphoreStripes]
}

// ensureState returns the state of a key.
func (st *semaphoreStripe) ensureState(key string, permits int64) *semaphoreState {
	k := st.keys[key]
	if k == nil {
		k = &semaphoreState{stripe: st, name: key, line: line{permits: permits}}
		if st.keys == nil {
			st.keys = make(map[string]*semaphoreState)
		}
		st.keys[key] = k
	}
	return k
}

// push puts a waiter in the line.
func (k *semaphoreState) push(w *waiter) {
	w.state = k
	heap.Push(&k.line, w)
}

// remove removes a waiter from the line.
func (k *semaphoreState) remove(w *waiter) {
	heap.Remove(&k.line, w.place)
	w.place = notInLine
	if k.Len() == 0 && !k.keeps {
		delete(k.stripe.keys, k.name)
	}
}

// waiting returns the number of waiters for a key.
func (st *semaphoreStripe) waiting(key string) int {
	st.mu.Lock()
	defer st.mu.Unlock()
	if k := st.keys[key]; k != nil {
		return k.Len()
	}
	return 0
}

func (st *semaphoreStripe) addTo(stats *SemaphoreStats) {
	st.mu.Lock()
	defer st.mu.Unlock()
	stats.Spare += st.spares
	stats.Reused += st.reused
	for _, k := range st.keys {
		stats.Waiting += k.Len()
	}
}
