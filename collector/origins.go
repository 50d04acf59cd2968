package collector

import (
	"context"
	"time"

	"github.com/hotparam/hotparam/wire"
)

// Origin says that about N counts of a hot key had the same route or caller. The
// bytes are valid during the call only.
type Origin struct {
	Rule []byte
	Text []byte
	Kind wire.OriginKind
	Name []byte
	N    int64
}

// OriginSink is a [Sink] that can tell where the requests of hot keys come from.
type OriginSink interface {
	// SendOrigins sends what became known by start. Nothing depends on it: what
	// cannot be sent is lost.
	SendOrigins(ctx context.Context, start time.Time, origins []Origin) Sent
}

const (
	// originsEvery is how often origins are sent.
	originsEvery = time.Second
	// maxOrigins is how many are sent at a time.
	maxOrigins = 500
)

// OnOrigins sets who is asked each second for the origins of hot keys, the
// hottest first: f calls tell for each of them until that is false. f is called
// by the goroutine that flushes and must not block. OnOrigins is safe for
// concurrent use; nil: nobody is asked.
func (c *Collector) OnOrigins(f func(tell func(Origin) bool)) { c.onOrigins.Store(&f) }

// sendOrigins sends the origins when they are due.
func (c *Collector) sendOrigins(ctx context.Context) {
	sink, can := c.sink.(OriginSink)
	ask := c.onOrigins.Load()
	if !can || ask == nil || *ask == nil || time.Duration(c.now-c.originsAt) < originsEvery {
		return
	}
	c.originsAt = c.now
	c.origins = c.origins[:0]
	(*ask)(func(o Origin) bool {
		c.origins = append(c.origins, o)
		return len(c.origins) < maxOrigins
	})
	if len(c.origins) > 0 {
		c.account(sink.SendOrigins(ctx, instant(c.now), c.origins), 0)
	}
}
