package graphitesource

import (
	"math"
	"time"

	"github.com/hotparam/hotparam/aggregator"
)

// Stats are the counters since the source was created, and its state.
type Stats struct {
	// Detector is at most a poll old.
	Detector aggregator.DetectorStats

	Polls    int64            // requests, including failed ones
	Failures map[string]int64 // failed requests and rejected answers, by reason: each of [Reasons]
	Skipped  int64            // times that the job was due while it still ran
	Panics   int64            // recovered panics of the job
	Series   int64            // series in the newest answer
	Points   int64            // points with a value; one that is read again counts again
	Counted  int64            // sum of the counts
	Revised  int64            // points that increased after they had been counted; the increase was counted too
	Shrunk   int64            // points that decreased; nothing is subtracted
	BadValue int64            // points not counted, below 0 or above [wire.MaxCount]; one that is read again counts again
	BadKey   int64            // series not counted whose key is not in the encoding
	Foreign  int64            // series of no rule, not counted; one that is read again counts again
	// Uncanonical is the number of series whose keys were not canonical, and are counted under
	// their canonical form.
	Uncanonical int64
	// MissedSeconds is the number of unknown seconds: Graphite did not keep them, or StatsD
	// wrote nothing.
	MissedSeconds int64
	// LastDuration is how long the newest answer took.
	LastDuration time.Duration
	// Behind is the age of the newest time whose counts are complete. Zero means that there is
	// none.
	Behind time.Duration
	// Frozen reports whether that time has stood still for a while, for the reason in Why. No
	// key becomes hot or cools.
	Frozen bool
	Why    string
}

// jobState is the state of a job after a poll, for Stats.
type jobState struct {
	stats    Stats
	failures [len(reasons)]int64
	complete time.Time     // all earlier counts have arrived; zero if not known yet
	ahead    time.Duration // lead of Graphite's clock over ours
	moved    time.Time     // time at which complete last advanced
	why      string        // failure of the last poll, if it failed
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

// increased returns sum+n, or the highest int64 if that overflows.
func increased(sum, n int64) int64 {
	if n > math.MaxInt64-sum {
		return math.MaxInt64
	}
	return sum + n
}
