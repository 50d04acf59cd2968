package kafkasink

import "time"

// RefreshEvery sets how often the cluster is asked for its partitions.
func (s *Sink) RefreshEvery(d time.Duration) { s.refreshEvery = d }

// StallAfter sets the time after which a session without progress is replaced.
func (s *Sink) StallAfter(d time.Duration) { s.stallAfter = d }

// ObeyThrottling makes the sink obey throttle times of up to d, which is a second otherwise.
func (s *Sink) ObeyThrottling(d time.Duration) { s.longestPause = d }

// Sessions returns how many sessions have not ended.
func (s *Sink) Sessions() int { return len(s.sessions) }
