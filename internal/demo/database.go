package demo

import (
	"context"
	"sync"
	"time"
)

// What an API reads its answers from.
const (
	// databaseRate is how many requests per second the database answers. The log has up to
	// 443, so there is room for it, but not for a crowd.
	databaseRate = 600
	// databaseTime is how long an answer takes when nobody waits.
	databaseTime = 8 * time.Millisecond
	// databasePatience is how long a request waits for its turn before it fails.
	databasePatience = 300 * time.Millisecond
)

// database stands for what is behind an API and is shared by all its instances: it answers so
// many requests per second, those that come faster wait in the order in which they came. Whose
// turn comes when is computed, so that how it fares depends on the requests and not on how
// busy the machine is.
type database struct {
	mu   sync.Mutex
	free time.Time // when the last request's turn is over
}

// ask waits for an answer. It reports false if there is none in time.
func (d *database) ask(ctx context.Context) bool {
	now := time.Now()
	d.mu.Lock()
	if d.free.Before(now) {
		d.free = now
	}
	wait := d.free.Sub(now)
	turn := wait <= databasePatience
	if turn {
		d.free = d.free.Add(time.Second / databaseRate)
		wait += databaseTime
	} else {
		wait = databasePatience
	}
	d.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return turn
	}
}
