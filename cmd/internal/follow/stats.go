package follow

import (
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/base"
)

// Counters are the counters of a follower. N is int64 in [Stats] and [atomic.Int64] in a
// follower.
type Counters[N any] struct {
	Lines     N // lines read
	Requests  N // requests counted
	Bad       N // lines that are not requests
	TooLong   N // lines in Bad that are longer than 1 MiB
	Old       N // requests older than every window, not counted
	Future    N // requests with a future time, counted as of now
	Rotated   N // rotations of logs
	Truncated N // truncations of logs
	Failed    N // failed reads

	// As of the last check of the logs:
	Missing N // missing or unreadable logs among Stats.Logs
	Files   N // open files; more than Logs during a rotation
	Behind  N // bytes written and not read yet
}

// Stats are the counters of a follower since it was created, and its current state.
type Stats struct {
	Counters[int64]
	Logs    int              // logs followed
	Looked  time.Time        // time of the last check of the logs; zero if Run has not begun
	Dropped map[string]int64 // sums of the counts that could not be sent, by reason
}

type counters struct {
	Counters[atomic.Int64]
	looked atomic.Int64
}

// Stats returns the counters. It is safe for concurrent use.
func (f *Follower) Stats() Stats {
	s := Stats{Counters: base.LoadCounters[Counters[int64]](&f.stats.Counters), Logs: len(f.config.Logs), Dropped: f.dropped()}
	if looked := f.stats.looked.Load(); looked > 0 {
		s.Looked = time.Unix(0, looked)
	}
	return s
}

// dropped returns the counts that could not be sent, by the transport's own reasons if it has
// any.
func (f *Follower) dropped() map[string]int64 {
	d := f.counts.Stats().Dropped
	if f.transport.Dropped == nil {
		return map[string]int64{"table_full": d.TableFull, "too_long": d.TooLong, "send_error": d.SendError}
	}
	all := f.transport.Dropped()
	all["table_full"] = d.TableFull
	return all
}

// recordState records the state of the logs.
func (f *Follower) recordState(now time.Time) {
	var missing, files, behind int64
	for _, t := range f.tails {
		if len(t.files) == 0 && !f.isStream {
			missing++
		}
		for _, file := range t.files {
			behind += max(0, file.size-file.offset)
		}
		files += int64(len(t.files))
	}
	f.stats.Missing.Store(missing)
	f.stats.Files.Store(files)
	f.stats.Behind.Store(behind)
	f.stats.looked.Store(now.UnixNano())
}
