package base

import (
	"context"
	"iter"
	"time"
)

// Ticks yields the time at each tick of an interval until ctx ends. Ticks that come while the
// caller is still busy with an earlier one are dropped.
func Ticks(ctx context.Context, interval time.Duration) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-ticker.C:
				if !yield(now) {
					return
				}
			}
		}
	}
}

// Sleep waits for d, or until ctx ends. It returns the error of ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
