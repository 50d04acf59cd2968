package collector

import (
	"context"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
)

// KeyOrigin is a route or a caller of about N of a hot key's requests, or the usage of a key or a
// route ([wire.Usage.Encode]). The bytes are only valid during the call.
type KeyOrigin struct {
	Rule []byte
	Text []byte
	Kind wire.OriginKind
	Name []byte
	N    int64
}

const (
	// originsEvery is the interval at which origins are sent.
	originsEvery = time.Second
	// maxOrigins bounds the number of origins that are sent at a time.
	maxOrigins = 500
)

// OnOrigins sets f, which is called each second for the origins of hot keys. f calls yield for
// each of them, beginning with the hottest key, until yield returns false. f is called by the
// goroutine that flushes and must not block. A nil f disables it. OnOrigins is safe for
// concurrent use.
func (c *Collector) OnOrigins(f func(yield func(KeyOrigin) bool)) { c.onOrigins.Store(&f) }

// OnUsage is like OnOrigins for the usage of keys and routes, which is sent with every flush.
func (c *Collector) OnUsage(f func(yield func(KeyOrigin) bool)) { c.onUsage.Store(&f) }

// sendOrigins sends the usage, and the origins when they are due.
func (c *Collector) sendOrigins(ctx context.Context) {
	c.sendAsked(ctx, c.onUsage.Load())
	if time.Duration(c.now-c.originsAt) >= originsEvery {
		c.originsAt = c.now
		c.sendAsked(ctx, c.onOrigins.Load())
	}
}

// sendAsked sends the origins that a function yields.
func (c *Collector) sendAsked(ctx context.Context, ask *func(yield func(KeyOrigin) bool)) {
	if !c.can.Origins || ask == nil || *ask == nil {
		return
	}
	c.origins = c.origins[:0]
	(*ask)(func(o KeyOrigin) bool {
		c.origins = append(c.origins, o)
		return len(c.origins) < maxOrigins
	})
	if len(c.origins) > 0 {
		c.recordSent(c.sink.SendOrigins(ctx, instant(c.now), c.origins), 0)
	}
}
