package redislimiter

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// clocks are what a store knows of the clocks of its servers.
type clocks struct {
	only   clock    // of a single server
	others sync.Map // of the masters of a cluster, *clock by address
}

// clock is how far the clock of a server is ahead of ours. The estimate is never too high while
// both run at one speed, so that a deadline that is told in the server's time is never after
// ours. The server's time at which a script began lies between the instants, by our clock, at
// which it was sent and at which its reply came: the tightest of these bounds counts, and a
// later reply that contradicts it corrects it, as after a clock was set.
type clock struct {
	ahead atomic.Int64 // µs
	known atomic.Bool
}

// clockOf returns the clock of the server of a key, or nil if several servers that cannot be
// told apart may have it.
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

// saw records that a script that was sent at that instant began at now, in µs.
func (c *clock) saw(sent time.Time, now int64) {
	if c == nil {
		return
	}
	least, most := now-time.Now().UnixMicro(), now-sent.UnixMicro()
	if ahead := c.ahead.Load(); !c.known.Load() || ahead < least {
		c.ahead.Store(least)
	} else if ahead > most {
		c.ahead.Store(most)
	}
	c.known.Store(true)
}

// now returns about the time of the server, in µs.
func (c *clock) now() int64 {
	now := time.Now().UnixMicro()
	if c != nil {
		now += c.ahead.Load()
	}
	return now
}

// till returns the deadline of ctx in the server's time, in µs, or 0 if that is unknown.
func (c *clock) till(ctx context.Context) float64 {
	if c == nil || !c.known.Load() {
		return 0
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return float64(max(deadline.UnixMicro()+c.ahead.Load(), 1))
}
