package kafkasink

import "time"

// RefreshEvery has the cluster asked for partitions more often.
func (s *Sink) RefreshEvery(d time.Duration) { s.refreshEvery = d }

// StallAfter replaces a session sooner in which nothing moves.
func (s *Sink) StallAfter(d time.Duration) { s.stallAfter = d }

// ObeyThrottling has the sink obey throttle times of up to d.
func (s *Sink) ObeyThrottling(d time.Duration) { s.cluster.throttleCap = d }

// Sessions returns how many sessions have not ended.
func (s *Sink) Sessions() int { return len(s.sessions) }
