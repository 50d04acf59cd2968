package limitertest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/semaphore"
)

var semaphoreCases = []semaphoreCase{
	{name: "F7: as many are at work as there are permits, and no more", run: func(s *semaphoreWorld) {
		ask := semaphore.Request{Permits: 3}
		var leases []semaphore.Lease
		for left := int64(2); left >= 0; left-- {
			lease, d := s.acquire(ask)
			if !d.Allowed || d.Limit != 3 || d.Remaining != left {
				s.Fatalf("%+v, want %d left", d, left)
			}
			leases = append(leases, lease)
		}
		if d := s.wantDenied(ask); d.RetryAfter <= 0 {
			s.Fatalf("%+v", d)
		}
		leases[1].Release()
		leases[1] = s.wantHeld(ask)
		s.wantDenied(ask)
		for _, l := range leases {
			l.Release()
		}
		for range 3 {
			defer s.wantHeld(ask).Release()
		}
	}},
	{name: "F7: many at once never hold more than there are, and all are served", run: func(s *semaphoreWorld) {
		const permits = 5
		var held, served atomic.Int64
		together(func(int) {
			for range 10 {
				lease, d, err := s.Acquire(s.Context(), "key", semaphore.Request{Permits: permits, Queue: 100, Within: 10 * patience})
				if err != nil || !d.Allowed {
					s.Errorf("%+v, error %v", d, err)
					return
				}
				if now := held.Add(1); now > permits {
					s.Errorf("%d of %d are held", now, permits)
				}
				held.Add(-1)
				lease.Release()
				served.Add(1)
			}
		})
		if got := served.Load(); got != 10*goroutines {
			s.Fatalf("%d were served", got)
		}
		for range permits {
			defer s.wantHeld(semaphore.Request{Permits: permits}).Release()
		}
	}},
	{name: "F7: permits of 0 or less are an error, and so is an empty key", run: func(s *semaphoreWorld) {
		for _, ask := range []semaphore.Request{{}, {Permits: -1}} {
			if lease, _, err := s.Acquire(s.Context(), "key", ask); err == nil || lease != (semaphore.Lease{}) {
				s.Fatalf("%+v: lease %v, error %v", ask, lease, err)
			}
		}
		if _, _, err := s.Acquire(s.Context(), "", semaphore.Request{Permits: 1}); !errors.Is(err, limiter.ErrNoKey) {
			s.Fatalf("an empty key: error %v", err)
		}
	}},
	{name: "F7: a lease is released once, and even on a panic", run: func(s *semaphoreWorld) {
		ask := semaphore.Request{Permits: 2}
		first := s.wantHeld(ask)
		func() {
			defer func() { _ = recover() }()
			defer s.wantHeld(ask).Release()
			s.wantDenied(ask)
			panic("at work")
		}()
		second := s.wantHeld(ask)
		first.Release()
		first.Release()
		third := s.wantHeld(ask)
		s.wantDenied(ask)
		second.Release()
		third.Release()
	}},
	{name: "F7: keys are apart", run: func(s *semaphoreWorld) {
		ask := semaphore.Request{Permits: 1}
		for _, key := range []string{"a", "b", "{a}", "a{b}", "\x00"} {
			lease, d, err := s.Acquire(s.Context(), key, ask)
			if err != nil || !d.Allowed {
				s.Fatalf("key %q: %+v, error %v", key, d, err)
			}
			defer lease.Release()
		}
	}},
	{name: "F7: with no line, who comes while all are at work is denied at once", run: func(s *semaphoreWorld) {
		held := s.wantHeld(semaphore.Request{Permits: 1})
		defer held.Release()
		start := time.Now()
		s.wantDenied(semaphore.Request{Permits: 1, Within: time.Hour})
		s.wantDenied(semaphore.Request{Permits: 1, Queue: 10})
		if took := time.Since(start); took > patience {
			s.Fatalf("it took %v", took)
		}
	}},
	{name: "F7: who waits in line is denied when its time is over", run: func(s *semaphoreWorld) {
		held := s.wantHeld(semaphore.Request{Permits: 1})
		start := time.Now()
		d := s.wantDenied(semaphore.Request{Permits: 1, Queue: 10, Within: 100 * ms})
		if took := time.Since(start); took < 100*ms-skew {
			s.Fatalf("after %v of 100ms", took)
		}
		if d.RetryAfter <= 0 {
			s.Fatalf("%+v", d)
		}
		held.Release()
		s.wantHeld(semaphore.Request{Permits: 1}).Release() // the denied waiter left nothing behind
	}},
	{name: "F7: who waits in line is served when a permit comes back", run: func(s *semaphoreWorld) {
		held := s.wantHeld(semaphore.Request{Permits: 1})
		time.AfterFunc(50*ms, held.Release)
		s.wantHeld(semaphore.Request{Permits: 1, Queue: 10, Within: patience}).Release()
	}},
	{name: "F7: who waits in line ends with its context, and holds nothing", run: func(s *semaphoreWorld) {
		held := s.wantHeld(semaphore.Request{Permits: 1})
		ctx, cancel := context.WithTimeout(s.Context(), 50*ms)
		defer cancel()
		lease, _, err := s.Acquire(ctx, "key", semaphore.Request{Permits: 1, Queue: 10, Within: time.Hour})
		if lease != (semaphore.Lease{}) || !errors.Is(err, context.DeadlineExceeded) {
			s.Fatalf("lease %v, error %v", lease, err)
		}
		held.Release()
		s.wantHeld(semaphore.Request{Permits: 1}).Release()
	}},
	{name: "F7, F9: another number of permits takes effect at once, and leases stay with whom they are", run: func(s *semaphoreWorld) {
		one, two := semaphore.Request{Permits: 1}, semaphore.Request{Permits: 2}
		a := s.wantHeld(one)
		s.wantDenied(one)
		b := s.wantHeld(two)
		s.wantDenied(two)
		a.Release()
		a.Release() // a second release must not free a permit of the other number
		s.wantDenied(one)
		b.Release()
		c := s.wantHeld(one)
		s.wantDenied(one)
		c.Release()
	}},
	{name: "F7: who comes beyond the line is denied at once", needsBubble: true, run: func(s *semaphoreWorld) {
		held := s.wantHeld(semaphore.Request{Permits: 1})
		ask := semaphore.Request{Permits: 1, Queue: 2, Within: time.Hour}
		var all sync.WaitGroup
		order := make(chan string, 2)
		s.startWaiter(&all, order, "first", ask)
		s.startWaiter(&all, order, "second", ask)
		start := time.Now()
		s.wantDenied(ask)
		if took := time.Since(start); took != 0 {
			s.Fatalf("it took %v", took)
		}
		held.Release()
		all.Wait()
	}},
	{name: "F7: those in line are served in the order in which they came", needsBubble: true, run: func(s *semaphoreWorld) {
		held := s.wantHeld(semaphore.Request{Permits: 1})
		s.inOrder(held, "abcdefgh", func(int) semaphore.Request {
			return semaphore.Request{Permits: 1, Queue: 10, Within: time.Hour}
		}, "abcdefgh")
	}},
	{name: "F7, G: a class that comes first overtakes in the line", needsBubble: true, run: func(s *semaphoreWorld) {
		held := s.wantHeld(semaphore.Request{Permits: 1})
		s.inOrder(held, "abcdef", func(i int) semaphore.Request {
			return semaphore.Request{Permits: 1, Queue: 10, Class: []int{2, 1, 0, 2, 1, 0}[i], Within: time.Hour}
		}, "cfbead")
	}},
}
