package replay

import (
	"context"
	"time"

	"github.com/hotparam/hotparam/internal/base"
)

// pacer slows a replay down to a multiple of the log's own speed.
type pacer struct {
	speed float64 // zero disables it
	began time.Time
	first time.Time
}

// maxWait is practically forever.
const maxWait = 100 * 365 * 24 * time.Hour

// until waits for the time t of the log.
func (p *pacer) until(ctx context.Context, t time.Time) error {
	if p.speed == 0 {
		return ctx.Err()
	}
	if p.began.IsZero() {
		p.began, p.first = time.Now(), t
	}
	behind := float64(t.Sub(p.first)) / p.speed
	due := p.began.Add(time.Duration(min(behind, float64(maxWait)))) // 1/speed can exceed the range of Duration
	return base.Sleep(ctx, time.Until(due))
}
