package limitertest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/rules"
)

// A crowd is a group of callers that wait for "key" again and again for a span. Their patience
// differs: from a fifth of the given patience to all of it. Together they need longer than any of
// them waits. At the same time one caller of endless patience waits for "alone". The number that
// it is served is the number that the machine allows, so a busy machine, which wakes all callers
// late, does not fail the test. A pause of the machine delays either alone, so a crowd that is
// served too rarely tries again: a backend that loses turns loses them each time.
type crowd struct {
	callers  int
	patience time.Duration
	span     time.Duration
	wait     func(ctx context.Context, key string) error
}

// tries is the number of spans in which a crowd may be served often enough.
const tries = 4

// served returns how often the crowd was served in a span, and how often the single caller was,
// and whether that was enough in one of the tries.
func (c crowd) served(enough func(together, alone int64) bool) (together, alone int64, ok bool) {
	for range tries {
		if together, alone = c.waitForSpan(); enough(together, alone) {
			return together, alone, true
		}
	}
	return together, alone, false
}

// waitForSpan returns how often the crowd was served in one span, and how often the single caller was.
func (c crowd) waitForSpan() (together, alone int64) {
	var (
		served atomic.Int64
		all    sync.WaitGroup
		start  = time.Now()
	)
	for i := range c.callers {
		all.Go(func() {
			for time.Since(start) < c.span {
				ctx, leave := context.WithCancel(context.Background())
				timer := time.AfterFunc(c.patience/5+c.patience*4/5*time.Duration(i)/time.Duration(c.callers), leave)
				if c.wait(ctx, "key") == nil {
					served.Add(1)
				} else {
					time.Sleep(ms)
				}
				timer.Stop()
				leave()
			}
		})
	}
	for time.Since(start) < c.span {
		if c.wait(context.Background(), "alone") == nil {
			alone++
		}
	}
	all.Wait()
	return served.Load(), alone
}

// waitCases wait by the system's clock, which is also the backend's.
var waitCases = []namedCase{
	{"waiters that give up leave their turn to the next", func(w *world) {
		for _, q := range []rules.Quota{
			{Rate: perSecond(50), Burst: 1},
			{Algorithm: rules.SlidingLog, Rate: perSecond(50)},
			{Algorithm: rules.LeakyBucket, Rate: perSecond(50), Burst: 40, Shape: true},
		} {
			q = q.WithDefaults()
			if !w.config.supports(&q, limiter.Reserve) || !w.config.supports(&q, limiter.Return) {
				continue
			}
			start := time.Now()
			backend := w.config.New(w.t, func() time.Duration { return (epoch + time.Since(start)).Truncate(w.config.tick()) })
			l, err := limiter.New(backend, "waiters", q)
			if err != nil {
				w.Fatalf("the suite's own quota: %v", err)
			}
			const span = 700 * ms
			const earned = 50 * int64(span) / int64(sec)
			n, alone, ok := crowd{50, 300 * ms, span, l.Wait}.served(func(n, alone int64) bool {
				return n > 0 && n >= min(earned, alone)/2
			})
			if !ok {
				w.Fatalf("%s: %d were served in %v, want about %d (one alone: %d)", describeQuota(&q), n, span, earned, alone)
			}
		}
	}},
}

var permitWaitCases = []permitCase{
	{name: "callers that give up leave their turn to the next", run: func(p *permitsWorld) {
		x, other := p.newObject(10, p.per), p.newObject(10, p.per)
		n, alone, ok := crowd{40, p.per, 4 * p.per, func(ctx context.Context, key string) error {
			if key == "alone" {
				return other.Acquire(ctx, 1)
			}
			return x.Acquire(ctx, 1)
		}}.served(func(n, alone int64) bool { return n > 0 && n >= min(40, alone)*5/8 })
		if !ok {
			p.Fatalf("%d were served in four intervals of 10 permits (one alone: %d)", n, alone)
		}
	}},
}

var semaphoreWaitCases = []semaphoreCase{
	{name: "callers that give up leave their turn to the next", run: func(s *semaphoreWorld) {
		ask := semaphore.Request{Permits: 1, Queue: 100, Within: time.Hour}
		n, alone, ok := crowd{40, 400 * ms, sec, func(ctx context.Context, key string) error {
			lease, _, err := s.Acquire(ctx, key, ask)
			if err == nil {
				time.Sleep(20 * ms)
				lease.Release()
			}
			return err
		}}.served(func(n, alone int64) bool { return n > 0 && n >= min(50, alone)*2/5 })
		if !ok {
			s.Fatalf("%d were served in a second, each in 20 ms (one alone: %d)", n, alone)
		}
	}},
}
