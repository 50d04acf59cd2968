package follow

import "sync/atomic"

// Stats are a follower's counters since it was made.
type Stats struct {
	Requests  int64 // that were counted
	Bad       int64 // lines that are no requests
	Old       int64 // requests older than every window, which were not counted
	Future    int64 // requests with a time to come, which were counted as of now
	Rotated   int64 // times that a log was rotated
	Truncated int64 // times that a log was truncated
	Failed    int64 // reads that failed
}

type counters struct{ lines, bad, old, future, rotated, truncated, failed atomic.Int64 }

// Stats returns the counters. It is safe for concurrent use.
func (f *Follower) Stats() Stats {
	c := &f.stats
	return Stats{
		Requests: c.lines.Load() - c.old.Load(), Bad: c.bad.Load(), Old: c.old.Load(), Future: c.future.Load(),
		Rotated: c.rotated.Load(), Truncated: c.truncated.Load(), Failed: c.failed.Load(),
	}
}
