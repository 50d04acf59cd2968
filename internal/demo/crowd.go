package demo

import (
	"context"
	"sync"
	"time"
)

// A flash crowd: everybody asks for one company.
const (
	CrowdRate   = 500 // requests per second, besides the log's
	CrowdLength = 15 * time.Second

	crowdValue  = "320193"
	crowdTarget = "/Archives/edgar/data?cik=" + crowdValue + "&accession=0000320193-17-000009&doc=-index.htm"
	// CrowdKey is what it asks for.
	CrowdKey = Route + "?" + Param + "=" + crowdValue

	crowdTick = 10 * time.Millisecond
	// settling is how long after its begin a crowd is measured: at first nobody knows of it.
	settling = time.Second
)

// crowd is the flash crowd, while there is one.
type crowd struct {
	mu         sync.Mutex
	from, till time.Time
	started    chan struct{} // has room for one
	any        bool
}

func newCrowd() *crowd { return &crowd{started: make(chan struct{}, 1)} }

// start begins one.
func (c *crowd) start(length time.Duration) {
	now := time.Now()
	c.mu.Lock()
	if !now.Before(c.till) {
		c.from = now
	}
	c.till, c.any = now.Add(length), true
	c.mu.Unlock()
	select {
	case c.started <- struct{}{}:
	default:
	}
}

// stop ends it.
func (c *crowd) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.till = time.Time{}
}

// left is how long it lasts yet; 0: there is none.
func (c *crowd) left(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, c.till.Sub(now))
}

// measured reports whether a request of this moment says how others fare beside the crowd.
func (c *crowd) measured(at time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return at.After(c.from.Add(settling)) && at.Before(c.till)
}

// run calls send for each of its requests until ctx ends.
func (c *crowd) run(ctx context.Context, send func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.started:
		}
		ticker := time.NewTicker(crowdTick)
		last, due := time.Now(), 0.0
		for now := last; c.left(now) > 0; {
			select {
			case <-ctx.Done():
				ticker.Stop()
				return
			case now = <-ticker.C:
			}
			due += min(now.Sub(last), time.Second/4).Seconds() * CrowdRate // a pause is not made up for
			for last = now; due >= 1; due-- {
				send()
			}
		}
		ticker.Stop()
	}
}
