package blame

import "time"

// backoff doubles the time until the next attempt.
type backoff struct {
	until time.Time
	last  time.Duration
}

const longestBackoff = 5 * time.Minute

func (b *backoff) waits(now time.Time) bool { return now.Before(b.until) }

// fail sets the time of the next attempt. The first failure after a long time counts as the first.
func (b *backoff) fail(now time.Time, first time.Duration) {
	if now.Sub(b.until) > longestBackoff {
		b.last = 0
	}
	b.last = min(max(first, 2*b.last), longestBackoff)
	b.until = now.Add(b.last)
}
