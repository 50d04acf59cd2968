package follow

import (
	"sync/atomic"
	"time"
)

// Stats are a follower's counters since it was made, and how it is now.
type Stats struct {
	Lines     int64 // that were read
	Requests  int64 // that were counted
	Bad       int64 // lines that are no requests
	TooLong   int64 // of these, those that are longer than 1 MiB
	Old       int64 // requests older than every window, which were not counted
	Future    int64 // requests with a time to come, which were counted as of now
	Rotated   int64 // times that a log was rotated
	Truncated int64 // times that a log was truncated
	Failed    int64 // reads that failed
	// Dropped are the sums of the counts that could not be sent, by reason.
	Dropped map[string]int64

	// As of the last look at the logs:
	Looked  time.Time // when that was; zero if Run has not begun
	Logs    int       // that are followed
	Missing int       // of these, those that are not there or cannot be read
	Files   int       // that are open: more than logs while some are being rotated
	Behind  int64     // bytes that are written and not read
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

// dropped returns what could not be sent, in the words of the transport where it has some.
func (f *Follower) dropped() map[string]int64 {
	d := f.counts.Stats().Dropped
	if f.transport.Dropped == nil {
		return map[string]int64{"table_full": d.TableFull, "too_long": d.TooLong, "send_error": d.SendError}
	}
	all := f.transport.Dropped()
	all["table_full"] = d.TableFull
	return all
}

// look records how the logs are.
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
