package base

import "sync"

// Guarded is a value that any goroutine may read and change, as the statistics of something that
// several goroutines work on, which are so declared in one struct. What counts requests does so by
// atomic counters instead; see [LoadCounters]. The zero Guarded holds the zero T.
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

// Change calls f with the value, which f may change and must not keep.
func (g *Guarded[T]) Change(f func(value *T)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f(&g.value)
}
