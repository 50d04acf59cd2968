package redislimiter

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// clocks are a store's estimates of its servers' clocks.
type clocks struct {
	only   clock    // clock of a single server
	others sync.Map // clocks of the masters of a cluster, *clock by address
}

// clock estimates how far a server's clock is ahead of ours. While both run at the same speed,
// the estimate is never too high, so a deadline in the server's time is never after ours. The
// server's time at which a script began lies between two instants of our clock: when it was sent
// and when its reply came. The tightest of these bounds counts. A later reply that contradicts it
// corrects it, as after a clock was set.
type clock struct {
	ahead atomic.Int64 // µs
	known atomic.Bool
}

// clockOf returns the clock of the server of a key. It returns nil if several servers may have
// the key and cannot be distinguished.
func (s *Store) clockOf(ctx context.Context, key string) *clock {
	switch client := s.client.(type) {
	case *redis.Client:
		return &s.clocks.only
	case *redis.ClusterClient:
		addr := server(ctx, client, key)
		if known, ok := s.clocks.others.Load(addr); ok {
			return known.(*clock)
		}
		known, _ := s.clocks.others.LoadOrStore(addr, new(clock))
		return known.(*clock)
	}
	return nil
}

// observe records that a script sent at sent began at the server's time now, in µs.
func (c *clock) observe(sent time.Time, now int64) {
	if c == nil {
		return
	}
	lower, upper := now-time.Now().UnixMicro(), now-sent.UnixMicro()
	if ahead := c.ahead.Load(); !c.known.Load() || ahead < lower {
		c.ahead.Store(lower)
	} else if ahead > upper {
		c.ahead.Store(upper)
	}
	c.known.Store(true)
}

// now returns the approximate time of the server, in µs.
func (c *clock) now() int64 {
	now := time.Now().UnixMicro()
	if c != nil {
		now += c.ahead.Load()
	}
	return now
}

// serverDeadline returns the deadline of ctx in the server's time, in µs, or 0 if that is unknown.
func (c *clock) serverDeadline(ctx context.Context) float64 {
	if c == nil || !c.known.Load() {
		return 0
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return float64(max(deadline.UnixMicro()+c.ahead.Load(), 1))
}
