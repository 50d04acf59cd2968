package base

import "sync"

// Guarded is a value that any goroutine may read and change. It suits the statistics of a type
// that several goroutines work on, declared in one struct. Code that counts requests uses atomic
// counters instead; see [LoadCounters]. The zero Guarded holds the zero T.
type Guarded[T any] struct {
	mu    sync.Mutex
	value T
}

// Load returns the value.
func (g *Guarded[T]) Load() T {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.value
}

// Change calls f with the value. f may change it, but must not keep the pointer.
func (g *Guarded[T]) Change(f func(value *T)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f(&g.value)
}
