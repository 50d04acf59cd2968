package follow

import (
	"sync/atomic"
	"time"
)

// Stats are a follower's counters since it was made, and its current state.
type Stats struct {
	Lines     int64 // lines read
	Requests  int64 // requests counted
	Bad       int64 // lines that are not requests
	TooLong   int64 // of Bad: lines longer than 1 MiB
	Old       int64 // requests older than every window, not counted
	Future    int64 // requests with a future time, counted as of now
	Rotated   int64 // rotations of logs
	Truncated int64 // truncations of logs
	Failed    int64 // failed reads
	// Dropped are the sums of the counts that could not be sent, by reason.
	Dropped map[string]int64

	// As of the last look at the logs:
	Looked  time.Time // zero if Run has not begun
	Logs    int       // logs followed
	Missing int       // of Logs: missing or unreadable
	Files   int       // open files: more than Logs during a rotation
	Behind  int64     // bytes written and not read yet
}

type counters struct {
	seen, lines, bad, long, old, future, rotated, truncated, failed atomic.Int64
	looked, missing, files, behind                                  atomic.Int64
}

// Stats returns the counters. It is safe for concurrent use.
func (f *Follower) Stats() Stats {
	c := &f.stats
	s := Stats{
		Lines: c.seen.Load(), Requests: c.lines.Load() - c.old.Load(), Bad: c.bad.Load(), TooLong: c.long.Load(),
		Old: c.old.Load(), Future: c.future.Load(),
		Rotated: c.rotated.Load(), Truncated: c.truncated.Load(), Failed: c.failed.Load(), Dropped: f.dropped(),
		Logs: len(f.config.Logs), Missing: int(c.missing.Load()), Files: int(c.files.Load()), Behind: c.behind.Load(),
	}
	if looked := c.looked.Load(); looked > 0 {
		s.Looked = time.Unix(0, looked)
	}
	return s
}

// dropped returns the counts that could not be sent, by the transport's own reasons if it has some.
func (f *Follower) dropped() map[string]int64 {
	d := f.counts.Stats().Dropped
	if f.transport.Dropped == nil {
		return map[string]int64{"table_full": d.TableFull, "too_long": d.TooLong, "send_error": d.SendError}
	}
	all := f.transport.Dropped()
	all["table_full"] = d.TableFull
	return all
}

// look records the state of the logs.
func (f *Follower) look(now time.Time) {
	var missing, files, behind int64
	for _, t := range f.tails {
		if len(t.files) == 0 && f.stream == nil {
			missing++
		}
		for _, file := range t.files {
			behind += max(0, file.size-file.offset)
		}
		files += int64(len(t.files))
	}
	f.stats.missing.Store(missing)
	f.stats.files.Store(files)
	f.stats.behind.Store(behind)
	f.stats.looked.Store(now.UnixNano())
}
