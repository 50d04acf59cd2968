package replay

import (
	"context"
	"time"
)

// pacer holds a replay back to a multiple of the log's own speed.
type pacer struct {
	speed float64 // 0: not at all
	began time.Time
	first time.Time
}

// maxWait is as good as for ever.
const maxWait = 100 * 365 * 24 * time.Hour

// until waits for the instant t of the log.
func (p *pacer) until(ctx context.Context, t time.Time) error {
	if p.speed == 0 {
		return ctx.Err()
	}
	if p.began.IsZero() {
		p.began, p.first = time.Now(), t
	}
	behind := float64(t.Sub(p.first)) / p.speed
	due := p.began.Add(time.Duration(min(behind, float64(maxWait)))) // 1/speed can be beyond what a Duration holds
	wait := time.Until(due)
	if wait <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
