package breaker

import "time"

// Stats is a snapshot of a [Set].
type Stats struct {
	Unavailable int       // unavailable nodes
	Since       time.Time // beginning of the oldest current outage; zero if there is none
	Probes      uint64
}

// Stats returns a snapshot.
func (s *Set[T]) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := Stats{Probes: s.probes.Load()}
	if nodes := s.nodes.Load(); nodes != nil {
		for _, n := range *nodes {
			if !n.unavailable.Load() {
				continue
			}
			if stats.Unavailable++; stats.Since.IsZero() || n.since.Before(stats.Since) {
				stats.Since = n.since
			}
		}
	}
	return stats
}
