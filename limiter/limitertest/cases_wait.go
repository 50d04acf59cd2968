package limitertest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/semaphore"
)

// crowd has callers wait again and again for so long, each with a patience of its own: a fifth of
// the span to all of it. Together they need longer than any of them waits. It returns how
// many were served.
func crowd(callers int, patience, span time.Duration, wait func(context.Context) error) int64 {
	var (
		served atomic.Int64
		all    sync.WaitGroup
		start  = time.Now()
	)
	for i := range callers {
		all.Go(func() {
			for time.Since(start) < span {
				ctx, leave := context.WithCancel(context.Background())
				timer := time.AfterFunc(patience/5+patience*4/5*time.Duration(i)/time.Duration(callers), leave)
				if wait(ctx) == nil {
					served.Add(1)
				} else {
					time.Sleep(ms)
				}
				timer.Stop()
				leave()
			}
		})
	}
	all.Wait()
	return served.Load()
}

// waitCases wait by the system's clock, which is also the backend's.
var waitCases = []namedCase{
	{"waiters that give up leave their turn to the next", func(w *world) {
		for _, q := range []hotparam.Quota{
			{Rate: perSecond(50), Burst: 1},
			{Algorithm: hotparam.SlidingLog, Rate: perSecond(50)},
			{Algorithm: hotparam.LeakyBucket, Rate: perSecond(50), Burst: 40, Shape: true},
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
			n := crowd(50, 300*ms, span, func(ctx context.Context) error { return l.Wait(ctx, "key") })
			if earned := 50 * int64(span) / int64(sec); n < earned/2 {
				w.Fatalf("%s: %d were served in %v, want about %d", told(&q), n, span, earned)
			}
		}
	}},
}

var permitWaitCases = []permitCase{
	{name: "callers that give up leave their turn to the next", run: func(p *permitsWorld) {
		x := p.one(10, p.per)
		n := crowd(40, p.per, 4*p.per, func(ctx context.Context) error { return x.Acquire(ctx, 1) })
		if n < 25 {
			p.Fatalf("%d were served in four intervals of 10 permits", n)
		}
	}},
}

var semaphoreWaitCases = []semaphoreCase{
	{name: "callers that give up leave their turn to the next", run: func(s *semaphoreWorld) {
		ask := semaphore.Ask{Permits: 1, Queue: 100, N: 1, Within: time.Hour}
		n := crowd(40, 400*ms, sec, func(ctx context.Context) error {
			lease, _, err := s.Acquire(ctx, "key", ask)
			if err == nil {
				time.Sleep(20 * ms)
				lease.Release()
			}
			return err
		})
		if n < 20 {
			s.Fatalf("%d were served in a second, each in 20 ms", n)
		}
	}},
}
