package oracle

import (
	"sync"
	"time"
)

// Stalls records the times at which the machine itself stood still, or was too busy to run a
// goroutine that only watches the clock. It is safe for concurrent use.
type Stalls struct {
	mu    sync.Mutex
	spans []Span
}

// Add records that nothing ran within the span.
func (s *Stalls) Add(span Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spans = append(s.spans, span)
	if len(s.spans) > 4096 {
		s.spans = append(s.spans[:0], s.spans[2048:]...)
	}
}

// Within returns how long the machine stood still within the span.
func (s *Stalls) Within(span Span) (sum time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.spans {
		d, _ := t.overlap(span)
		sum += d
	}
	return sum
}

// Extended returns the end of a deadline of d from the given time. Every stall since then counts
// three times, as it delays several processes one after the other.
func (s *Stalls) Extended(from, d, now time.Duration) time.Duration {
	return from + d + 3*s.Within(Span{from, now})
}
