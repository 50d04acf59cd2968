package aggregator

import (
	"testing"
	"time"
)

// Merged stats have reached the time that the slowest shard has reached.
func TestReachedIsOfTheSlowestShard(t *testing.T) {
	now := time.Now()
	var all DetectorStats
	for _, reached := range []time.Time{{}, now, now.Add(-time.Minute), {}} {
		all.Merge(&DetectorStats{Reached: reached})
	}
	if !all.Reached.Equal(now.Add(-time.Minute)) {
		t.Errorf("reached %v ago", now.Sub(all.Reached))
	}
}
