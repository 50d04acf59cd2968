package limitertest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/limiter"
)

const goroutines = 8

// rounds returns how often each goroutine asks, which is less often if calls are slow.
func (c *Config) rounds() int {
	if c.Schedules > 0 {
		return 50
	}
	return 1000
}

// together runs f in goroutines that start at the same moment.
func together(f func(g int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for g := range goroutines {
		all.Go(func() {
			<-start
			f(g)
		})
	}
	close(start)
	all.Wait()
}

// try asks from a goroutine, which must not end the test.
func (k *modelKey) try(ask limiter.Request) limiter.Result {
	op := k.op
	op.Request = ask
	r, err := k.backend.Do(context.Background(), op)
	if err != nil {
		k.t.Errorf("%s: %s: %v", describeQuota(k.quota), describeRequest(ask), err)
	}
	return r
}

// ready skips the case unless the backend supports the asks of the goroutines.
func (k *modelKey) ready(asked ...limiter.OpKind) {
	for _, kind := range asked {
		if !k.config.supports(k.quota, kind) {
			k.t.Skipf("the backend does not support this: %s of %s", kinds[kind], describeQuota(k.quota))
		}
	}
}

var concurrentCases = []namedCase{
	{"concurrent asks at one instant are admitted exactly as many as there are", func(w *world) {
		burst := int64(goroutines * w.config.rounds() / 2)
		for k := range w.oneOfEach(burst) {
			k.ready(limiter.Take)
			var admitted atomic.Int64
			together(func(int) {
				for range w.config.rounds() {
					admitted.Add(k.try(take(1)).Taken)
				}
			})
			if got := admitted.Load(); got != burst {
				w.Fatalf("%s: admitted %d", describeQuota(k.quota), got)
			}
		}
	}},
	{"concurrent asks for many keys are each admitted what its key has", func(w *world) {
		const each = 5
		keys := w.config.rounds() / 5
		q := bucket(perSecond(1), each)
		var all []*modelKey
		for i := range keys {
			all = append(all, w.keyNamed("limit", fmt.Sprint("key ", i), q))
		}
		all[0].ready(limiter.Take)
		admitted := make([]atomic.Int64, keys)
		together(func(g int) {
			for i := range keys {
				index := (i*7 + g) % keys
				admitted[index].Add(all[index].try(take(1)).Taken)
			}
		})
		for i := range admitted {
			if got := admitted[i].Load(); got != each {
				w.Fatalf("key %d: admitted %d, want %d", i, got, each)
			}
		}
	}},
	{"what concurrent asks give back is there again, and never more", func(w *world) {
		const burst = 10
		for k := range w.oneOfEach(burst) {
			k.ready(limiter.Take, limiter.Return)
			var held, excess atomic.Int64
			together(func(g int) {
				n := int64(1 + g%3)
				for range w.config.rounds() {
					r := k.try(take(n))
					if !r.Allowed {
						continue
					}
					if now := held.Add(n); now > burst {
						excess.Store(now)
					}
					held.Add(-n)
					k.try(returnOf(n, r))
				}
			})
			if got := excess.Load(); got > burst {
				w.Fatalf("%s: %d permits were held at once", describeQuota(k.quota), got)
			}
			k.loose = true
			k.wantAllowed(k.take(burst), 0)
			k.wantAnyDenial(k.take(1))
		}
	}},
	{"no concurrent charge is lost", func(w *world) {
		k := w.key(bucket(perSecond(1_000_000), 1)) // a minute of it is 6e7
		k.ready(limiter.Charge, limiter.Peek)
		together(func(int) {
			for range w.config.rounds() {
				k.try(limiter.Request{Kind: limiter.Charge, N: 3})
			}
		})
		owed := time.Duration(goroutines*w.config.rounds()*3 - 1)
		if r := k.askBackend(peek(1)); r.RetryAfter != (owed+1)*us {
			w.Fatalf("%d are owed: %s", owed, describeResult(r))
		}
	}},
	{"concurrent reservations are each served in their turn", func(w *world) {
		q := bucket(perSecond(1000), 1)
		k := w.key(q)
		k.ready(limiter.Reserve)
		asks := goroutines * w.config.rounds() / 5
		delays := make([]atomic.Int64, asks)
		together(func(int) {
			for range w.config.rounds() / 5 {
				r := k.try(limiter.Request{Kind: limiter.Reserve, N: 1, Within: time.Minute})
				if i := int(r.Delay / ms); r.Allowed && i < asks {
					delays[i].Add(1)
				}
			}
		})
		for i := range delays {
			if n := delays[i].Load(); n != 1 {
				w.Fatalf("%d reservations for %d ms", n, i)
			}
		}
	}},
	{"concurrent asks on a clock that each sees a little late keep to the rate", func(w *world) {
		q := bucket(perSecond(1000), 5)
		k := w.key(q)
		k.ready(limiter.Take)
		var admitted atomic.Int64
		together(func(int) {
			for range w.config.rounds() {
				w.sleep(100 * us)
				admitted.Add(k.try(take(1)).Taken)
			}
		})
		got, took := admitted.Load(), w.now()-epoch
		if !quotaEarns(k.quota, got, took) {
			w.Fatalf("admitted %d in %v", got, took)
		}
		if want := int64(took/ms) / 2; got < want { // late clocks may cost some permits, never many
			w.Fatalf("admitted %d in %v, want at least %d", got, took, want)
		}
	}},
}
