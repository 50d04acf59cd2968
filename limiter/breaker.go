package limiter

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// breaker is the circuit breaker of a [Failover]: the first failure opens it, and it
// is closed by a probe that is answered. Requests read one word of it.
type breaker struct {
	tripped atomic.Bool
	outages atomic.Uint64 // that have ended: a failure of a call from before one of them tells nothing
	left    atomic.Int64  // callers in a row who left before an answer
	probing atomic.Bool
	opened  chan struct{} // wakes whoever probes; holds one

	minProbe, maxProbe time.Duration
	logger             *slog.Logger

	mu    sync.Mutex // guards what follows
	since time.Time  // when it opened, or closed
	next  time.Time  // when to probe
	delay time.Duration
	ask   []Op // what to ask in a probe: Peeks at what failed
}

const (
	// maxAsk is how many ops a probe peeks at: a few, since they may be of several
	// nodes of a cluster, one of which is away.
	maxAsk = 16
	// maxLeft is how many callers in a row may leave before they have an answer: if
	// none has the patience for a time-out, they are how one shows.
	maxLeft = 10
)

func newBreaker(minProbe, maxProbe time.Duration, logger *slog.Logger) breaker {
	return breaker{opened: make(chan struct{}, 1), minProbe: minProbe, maxProbe: maxProbe, logger: logger}
}

// answered tells whether err is an answer all the same.
func answered(err error) bool {
	return err == nil || errors.Is(err, ErrNoKey) || errors.Is(err, ErrUnsupported)
}

// failed tells whether a call that came to err under the caller's ctx shows that the
// backend is away.
func (b *breaker) failed(ctx context.Context, err error) bool {
	switch {
	case answered(err):
		if b.left.Load() != 0 {
			b.left.Store(0)
		}
		return false
	case ended(ctx):
		return b.left.Add(1) >= maxLeft
	}
	return true
}

// ended tells whether the context is over. Its deadline tells so too: a connection's
// own deadline, set to the same instant, may come a little before the context's timer.
func ended(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// open opens it after a call of ops has failed, one that began after that many
// outages.
func (b *breaker) open(outages uint64, err error, ops ...Op) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tripped.Load() || b.outages.Load() != outages {
		return
	}
	now := time.Now()
	if b.delay = min(2*b.delay, b.maxProbe); now.Sub(b.since) > b.maxProbe {
		b.delay = b.minProbe // it was well for a while
	}
	b.since, b.next = now, now.Add(jittered(b.delay))
	b.ask = b.ask[:0]
	for _, op := range ops[:min(len(ops), maxAsk)] {
		op.Key, op.Ask = strings.Clone(op.Key), Ask{Kind: Peek, N: 1} // it outlives the request
		b.ask = append(b.ask, op)
	}
	b.left.Store(0)
	b.tripped.Store(true)
	select {
	case b.opened <- struct{}{}:
	default:
	}
	b.logger.Warn("limiter: the backend is away", "error", err)
}

// untilProbe is how long until the next probe, while it is open.
func (b *breaker) untilProbe() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(0, time.Until(b.next))
}

// probe asks the backend if that is due and nobody else does; it closes the breaker if
// there is an answer.
func (b *breaker) probe(ctx context.Context, call func(context.Context, []Op) error) {
	if !b.probing.CompareAndSwap(false, true) {
		return
	}
	defer b.probing.Store(false)
	if !b.tripped.Load() || b.untilProbe() > 0 {
		return
	}
	err := call(ctx, b.ask) // written by open alone, which waits for us to close
	if ended(ctx) && !answered(err) {
		return // who asked has left
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if !answered(err) {
		b.delay = min(2*b.delay, b.maxProbe)
		b.next = now.Add(jittered(b.delay))
		return
	}
	b.logger.Info("limiter: the backend is back", "after", now.Sub(b.since))
	b.since = now
	b.outages.Add(1)
	b.tripped.Store(false)
}

// watch probes until the context ends.
func (b *breaker) watch(ctx context.Context, call func(context.Context, []Op) error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		if !b.tripped.Load() {
			select {
			case <-ctx.Done():
			case <-b.opened:
			}
			continue
		}
		timer.Reset(max(b.untilProbe(), time.Millisecond)) // due, and made by another: not in a loop
		select {
		case <-ctx.Done():
		case <-timer.C:
			b.probe(ctx, call)
		}
	}
}

// jittered is three to five quarters of d, so that instances do not probe in step.
func jittered(d time.Duration) time.Duration { return d*3/4 + rand.N(d/2+1) }
