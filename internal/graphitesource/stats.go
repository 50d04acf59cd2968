package graphitesource

import (
	"math"
	"time"

	"github.com/hotparam/hotparam/aggregator"
)

// Stats are a source's counters since it was made, and how it stands.
type Stats struct {
	// Detector is at most a poll old.
	Detector aggregator.DetectorStats

	Polls    int64            // requests, those that failed, too
	Failures map[string]int64 // of those and of what they brought, by reason: each of [Reasons]
	Skipped  int64            // times that the job was due while it still ran
	Panics   int64            // of the job, recovered
	Series   int64            // of the newest answer
	Points   int64            // points with a value that were read, each as often as it came
	Counted  int64            // sum of the counts
	Revised  int64            // points that became more after they had been counted: the rest was counted, too
	Shrunk   int64            // points that became less: nothing is taken back
	BadValue int64            // points not counted: below 0, or above [wire.MaxCount]; each as often as it came
	BadKey   int64            // series not counted: the key is none that the encoding writes
	Foreign  int64            // series not counted: of no rule; each as often as it came
	// Uncanonical are series whose keys were not canonical, and are counted as what
	// they are in canonical form.
	Uncanonical int64
	// MissedSeconds is how many seconds are unknown: Graphite did not keep them, or StatsD
	// wrote nothing.
	MissedSeconds int64
	// LastDuration is how long the newest answer took.
	LastDuration time.Duration
	// Behind is how old the newest time is whose counts are complete. Zero means that none
	// is.
	Behind time.Duration
	// Frozen: that time has stood still for a while, for the reason Why. Nothing
	// becomes hot and nothing cools.
	Frozen bool
	Why    string
}

// standing is the state of a job after a poll, for Stats.
type standing struct {
	stats    Stats
	failures [len(reasons)]int64
	complete time.Time     // all counts of before have come; zero: none has
	ahead    time.Duration // of Graphite's clock before ours
	moved    time.Time     // when complete last went on
	why      string        // of the last poll, if it failed
}

// Stats returns the counters and the state.
func (s *Source) Stats() Stats {
	now := time.Now()
	shown := s.shown.Load()
	all := shown.stats
	all.Skipped, all.Panics = s.skipped.Load(), s.panics.Load()
	all.Failures = make(map[string]int64, len(reasons))
	for i, name := range reasons {
		all.Failures[name] = shown.failures[i]
	}
	if !shown.complete.IsZero() {
		all.Behind = max(0, now.Add(shown.ahead).Sub(shown.complete))
	}
	if all.Frozen = shown.complete.IsZero() || now.Sub(shown.moved) > s.patience; all.Frozen {
		all.Why = shown.why
		switch {
		case all.Why != "":
		case shown.complete.IsZero():
			all.Why = "Graphite has not answered yet"
		default:
			all.Why = "the job has not been done since " + shown.moved.UTC().Format(time.RFC3339)
		}
	}
	return all
}

// increased is a sum that ends at the highest number.
func increased(sum, n int64) int64 {
	if n > math.MaxInt64-sum {
		return math.MaxInt64
	}
	return sum + n
}
