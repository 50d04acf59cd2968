package demo

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/base"
)

// The demo's flash crowd: many requests for a single company.
const (
	CrowdRate   = 500 // requests per second, in addition to the log's
	CrowdLength = 15 * time.Second

	crowdValue  = "320193"
	crowdTarget = "/Archives/edgar/data?cik=" + crowdValue + "&accession=0000320193-17-000009&doc=-index.htm"
	// CrowdKey is the key that the crowd requests.
	CrowdKey = Route + "?" + Param + "=" + crowdValue

	crowdTick = 10 * time.Millisecond
	// settling is the time from the crowd's start to the first measurement, as detection takes a
	// moment.
	settling = time.Second
)

// flashCrowd is the demo's flash crowd. It is idle most of the time.
type flashCrowd struct {
	mu          sync.Mutex
	began, ends time.Time     // current or last crowd
	started     chan struct{} // has a buffer of one
	ranBefore   bool          // whether there has been a crowd

	sent atomic.Int64 // its requests that are measured
}

func newCrowd() *flashCrowd { return &flashCrowd{started: make(chan struct{}, 1)} }

// start starts a crowd or extends the current one, which then ends after length from now.
func (c *flashCrowd) start(length time.Duration) {
	now := time.Now()
	c.mu.Lock()
	if !now.Before(c.ends) {
		c.began = now
	}
	c.ends, c.ranBefore = now.Add(length), true
	c.mu.Unlock()
	select {
	case c.started <- struct{}{}:
	default:
	}
}

// stop ends the crowd.
func (c *flashCrowd) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends = time.Time{}
}

// remaining returns the remaining time of the crowd, or 0 if there is none.
func (c *flashCrowd) remaining(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, c.ends.Sub(now))
}

// isMeasured reports whether the latency of a request sent at this time is counted for the crowd.
func (c *flashCrowd) isMeasured(sent time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return sent.After(c.began.Add(settling)) && sent.Before(c.ends)
}

// run calls send for each of the crowd's requests until ctx ends.
func (c *flashCrowd) run(ctx context.Context, send func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.started:
		}
		last, due := time.Now(), 0.0
		for now := range base.Ticks(ctx, crowdTick) {
			due += min(now.Sub(last), time.Second/4).Seconds() * CrowdRate // requests missed in a pause are not caught up
			for last = now; due >= 1; due-- {
				if c.isMeasured(time.Now()) {
					c.sent.Add(1)
				}
				send()
			}
			if c.remaining(now) == 0 {
				break
			}
		}
	}
}
