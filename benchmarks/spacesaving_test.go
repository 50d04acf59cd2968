package benchmarks

import "testing"

// spaceSaving is the textbook's Space-Saving (Metwally, Agrawal, El Abbadi, 2005): a new key
// without room takes over the smallest counter, and the count of that one is the error of the
// newcomer. The counters are a heap, the smallest on top.
type spaceSaving struct {
	heap []*ssCounter
	keys map[string]*ssCounter
}

type ssCounter struct {
	key          string
	count, error int64
	at           int // index in the heap
}

func newSpaceSaving(counters int) *spaceSaving {
	return &spaceSaving{heap: make([]*ssCounter, 0, counters), keys: make(map[string]*ssCounter, counters)}
}

func (s *spaceSaving) add(key string) {
	c, ok := s.keys[key]
	switch {
	case ok:
	case len(s.heap) < cap(s.heap):
		c = &ssCounter{key: key, at: len(s.heap)}
		s.heap = append(s.heap, c)
		s.keys[key] = c
		for c.at > 0 { // it holds 0: nothing is smaller
			s.swap(c.at, (c.at-1)/2)
		}
	default:
		c = s.heap[0]
		delete(s.keys, c.key)
		c.key, c.error = key, c.count
		s.keys[key] = c
	}
	c.count++
	for { // down, to where both children are larger
		child := 2*c.at + 1
		if child >= len(s.heap) {
			return
		}
		if right := child + 1; right < len(s.heap) && s.heap[right].count < s.heap[child].count {
			child = right
		}
		if s.heap[child].count >= c.count {
			return
		}
		s.swap(c.at, child)
	}
}

func (s *spaceSaving) swap(i, j int) {
	s.heap[i], s.heap[j] = s.heap[j], s.heap[i]
	s.heap[i].at, s.heap[j].at = i, j
}

// The textbook's bounds hold. A counter is at least the key's count and exceeds it by at most its
// error. All counters add up to the stream. A key with more than its share of the stream has a
// counter.
func TestSpaceSavingKeepsItsBounds(t *testing.T) {
	const counters = 50
	s, exact := newSpaceSaving(counters), map[string]int64{}
	stream := texts("%d", zipf(1000))
	for _, key := range stream {
		s.add(key)
		exact[key]++
	}
	var sum int64
	for key, c := range s.keys {
		sum += c.count
		if n := exact[key]; c.key != key || n > c.count || n < c.count-c.error {
			t.Errorf("%s came %d times, the counter says %+v", key, n, *c)
		}
	}
	if sum != int64(len(stream)) {
		t.Errorf("the counters have %d, the stream %d", sum, len(stream))
	}
	for key, n := range exact {
		if n > int64(len(stream)/counters) && s.keys[key] == nil {
			t.Errorf("%s came %d times and has no counter", key, n)
		}
	}
}
