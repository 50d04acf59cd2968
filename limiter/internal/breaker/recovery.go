package breaker

import "time"

// Recovering returns for how long another process may still be without the node, after an outage
// or a silence that this Set has seen end. Each process probes at different times, so another one
// may find the node up to the time between two of its probes later. After that it needs Settling.
func (s *Set[T]) Recovering(name string) time.Duration {
	if s.Recovered() {
		return 0
	}
	if n := s.findNode(name); n != nil {
		return max(0, time.Duration(n.until.Load())-time.Since(s.made))
	}
	return 0
}

// Recovered reports whether Recovering is 0 for all nodes.
func (s *Set[T]) Recovered() bool {
	until := s.until.Load()
	return until == 0 || until <= int64(time.Since(s.made))
}

// recover records that the node answers again, and that others may find out after spread.
func (s *Set[T]) recover(n *nodeBreaker[T], spread time.Duration) {
	until := int64(time.Since(s.made) + spread + s.Settling)
	raise(&n.until, until)
	raise(&s.until, until)
}

// spread returns the longest time between two probes of another process after an outage. Delays
// double, and the sum of those before is at least three quarters of their mean.
func (s *Set[T]) spread(n *nodeBreaker[T], outage time.Duration) time.Duration {
	return min(max(outage*4/3+s.Min, 2*n.delay), s.Max) * 5 / 4
}
