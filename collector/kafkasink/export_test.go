package kafkasink

import "time"

// RefreshEvery has the cluster asked for partitions more often.
func (s *Sink) RefreshEvery(d time.Duration) { s.refreshEvery = d }
