package limitertest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/limiter/permits"
)

var permitCases = []permitCase{
	{name: "E1: TrySetRate sets only when unset, and says whether it did", run: func(p *permitsWorld) {
		x := p.config.New(p.T, 1)[0]
		p.answers(true)(x.TrySetRate(p.Context(), rateOf(5, time.Hour)))
		p.answers(false)(x.TrySetRate(p.Context(), rateOf(9, time.Minute)))
		r, err := x.Config(p.Context())
		p.must(err)
		if r != rateOf(5, time.Hour) {
			p.Fatalf("the rate is %+v", r)
		}
		p.checkAvailable(x, 5)
	}},
	{name: "E1: SetRate overwrites, and resets the state", run: func(p *permitsWorld) {
		x := p.newObject(5, time.Hour)
		p.takes(x, 5, true)
		p.must(x.SetRate(p.Context(), rateOf(8, time.Hour)))
		p.checkAvailable(x, 8)
		p.takes(x, 8, true)
		p.takes(x, 1, false)
	}},
	{name: "E1: UpdateRate overwrites, and keeps what was taken", run: func(p *permitsWorld) {
		x := p.newObject(5, time.Hour)
		p.takes(x, 3, true)
		p.must(x.UpdateRate(p.Context(), rateOf(8, time.Hour)))
		p.checkAvailable(x, 5)
		p.must(x.UpdateRate(p.Context(), rateOf(2, time.Hour)))
		p.checkAvailable(x, 0)
		p.takes(x, 1, false)
		p.fails(p.config.New(p.T, 1)[0].UpdateRate(p.Context(), rateOf(2, time.Hour)), permits.ErrRateNotSet)
		each := rateOf(2, time.Hour)
		each.PerClient = true
		p.must(x.UpdateRate(p.Context(), each)) // other permits
		p.checkAvailable(x, 2)
	}},
	{name: "E1: a rate that is none is an error", run: func(p *permitsWorld) {
		x := p.config.New(p.T, 1)[0]
		for _, r := range []permits.Rate{{}, rateOf(0, sec), rateOf(-1, sec), rateOf(1, 0), rateOf(1, -sec), rateOf(1, 1<<62), keptFor(sec - 1), keptFor(-1)} {
			if _, err := x.TrySetRate(p.Context(), r); err == nil {
				p.Fatalf("%+v was set", r)
			}
			if err := x.SetRate(p.Context(), r); err == nil {
				p.Fatalf("%+v was set", r)
			}
		}
		_, err := x.Config(p.Context())
		p.fails(err, permits.ErrRateNotSet)
	}},
	{name: "E2: overall, all clients share", run: func(p *permitsWorld) {
		all := p.config.New(p.T, 2)
		p.must(all[0].SetRate(p.Context(), rateOf(5, time.Hour)))
		p.takes(all[0], 3, true)
		p.checkAvailable(all[1], 2)
		p.takes(all[1], 3, false)
		p.takes(all[1], 2, true)
		p.takes(all[0], 1, false)
	}},
	{name: "E2: per client, each has its own", run: func(p *permitsWorld) {
		all := p.config.New(p.T, 2)
		r := rateOf(5, time.Hour)
		r.PerClient = true
		p.must(all[0].SetRate(p.Context(), r))
		p.takes(all[0], 5, true)
		p.checkAvailable(all[1], 5)
		p.takes(all[1], 5, true)
		p.takes(all[0], 1, false)
		p.takes(all[1], 1, false)
	}},
	{name: "E3: an unset rate, more than the rate, and less than one permit are errors", run: func(p *permitsWorld) {
		for _, x := range []struct {
			object permits.RateLimiter
			n      int64
			want   error
		}{
			{p.config.New(p.T, 1)[0], 1, permits.ErrRateNotSet},
			{p.newObject(5, time.Hour), 6, permits.ErrTooMany},
			{p.newObject(5, time.Hour), 0, permits.ErrNone},
			{p.newObject(5, time.Hour), -1, permits.ErrNone},
		} {
			_, err := x.object.TryAcquire(p.Context(), x.n)
			p.fails(err, x.want)
			_, err = x.object.TryAcquireWithin(p.Context(), x.n, time.Minute)
			p.fails(err, x.want)
			p.fails(x.object.Acquire(p.Context(), x.n), x.want)
		}
		_, err := p.config.New(p.T, 1)[0].Config(p.Context())
		p.fails(err, permits.ErrRateNotSet)
	}},
	{name: "E3: a timeout that is shorter than the wait fails at once", run: func(p *permitsWorld) {
		x := p.newObject(2, time.Hour)
		p.takes(x, 2, true)
		start := time.Now()
		p.answers(false)(x.TryAcquireWithin(p.Context(), 1, 59*time.Minute))
		p.answers(false)(x.TryAcquireWithin(p.Context(), 1, 0))
		if took := time.Since(start); took > patience {
			p.Fatalf("it took %v", took)
		}
		p.checkAvailable(x, 0)
	}},
	{name: "E3: a timeout that is long enough waits", run: func(p *permitsWorld) {
		start := time.Now()
		x := p.newObject(2, p.per)
		p.takes(x, 2, true)
		p.answers(true)(x.TryAcquireWithin(p.Context(), 1, patience))
		if took := time.Since(start); took < p.per-skew {
			p.Fatalf("it waited %v of %v", took, p.per)
		}
	}},
	{name: "E3: Acquire waits until there are as many", run: func(p *permitsWorld) {
		start := time.Now()
		x := p.newObject(2, p.per)
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				if err := x.Acquire(p.Context(), 1); err != nil {
					p.Error(err)
				}
			})
		}
		all.Wait()
		if took := time.Since(start); took < 2*p.per-skew {
			p.Fatalf("6 at 2 in %v took %v", p.per, took)
		}
	}},
	{name: "E3: Acquire ends with its context, and took nothing", run: func(p *permitsWorld) {
		x := p.newObject(2, time.Hour)
		p.takes(x, 2, true)
		ctx, cancel := context.WithTimeout(p.Context(), 50*ms)
		defer cancel()
		p.fails(x.Acquire(ctx, 1), context.DeadlineExceeded)
		p.must(x.Release(p.Context(), 2))
		p.checkAvailable(x, 2)
		p.takes(x, 2, true)
	}},
	{name: "E4 bug: a permit is back an interval after it was taken, and permits are counted, not entries", run: func(p *permitsWorld) {
		x := p.newObject(5, p.per)
		p.takes(x, 3, true)
		p.takes(x, 2, true)
		p.eventually("all five are back", func() bool {
			n, err := x.AvailablePermits(p.Context())
			p.must(err)
			return n == 5
		})
		p.takes(x, 5, true)
	}},
	{name: "E4: a permit is back exactly then", needsBubble: true, run: func(p *permitsWorld) {
		x := p.newObject(5, p.per)
		p.takes(x, 3, true)
		time.Sleep(200 * ms)
		p.takes(x, 2, true)
		time.Sleep(p.per - 200*ms - time.Nanosecond)
		p.checkAvailable(x, 0)
		time.Sleep(time.Nanosecond)
		p.checkAvailable(x, 3)
		p.takes(x, 4, false)
		p.takes(x, 3, true)
		time.Sleep(200 * ms)
		p.checkAvailable(x, 2)
	}},
	{name: "E3: who waits gets its permits exactly when they are back", needsBubble: true, run: func(p *permitsWorld) {
		x := p.newObject(2, p.per)
		start := time.Now()
		for i := range time.Duration(7) {
			p.must(x.Acquire(p.Context(), 1))
			if waited := time.Since(start); waited != i/2*p.per {
				p.Fatalf("permit %d after %v", i, waited)
			}
		}
	}},
	{name: "E5: Release gives back what was taken, and no more", run: func(p *permitsWorld) {
		x := p.newObject(5, time.Hour)
		p.takes(x, 4, true)
		p.must(x.Release(p.Context(), 3))
		p.checkAvailable(x, 4)
		p.must(x.Release(p.Context(), 5))
		p.checkAvailable(x, 5)
		p.takes(x, 5, true)
		p.takes(x, 1, false)
		p.fails(x.Release(p.Context(), 0), permits.ErrNone)
		p.fails(p.config.New(p.T, 1)[0].Release(p.Context(), 1), permits.ErrRateNotSet)
	}},
	{name: "E5: AvailablePermits takes none, and the rate can be read", run: func(p *permitsWorld) {
		x := p.newObject(5, time.Hour)
		for range 3 {
			p.checkAvailable(x, 5)
		}
		r, err := x.Config(p.Context())
		p.must(err)
		if r != rateOf(5, time.Hour) {
			p.Fatalf("the rate is %+v", r)
		}
	}},
	{name: "E5: Expire lets all go in time, ClearExpire keeps it", run: func(p *permitsWorld) {
		x := p.config.New(p.T, 1)[0]
		p.answers(false)(x.Expire(p.Context(), time.Hour))
		p.answers(false)(x.ClearExpire(p.Context()))
		p.must(x.SetRate(p.Context(), rateOf(5, time.Hour)))
		p.answers(false)(x.ClearExpire(p.Context()))
		p.answers(true)(x.Expire(p.Context(), time.Hour))
		p.answers(true)(x.ClearExpire(p.Context()))
		p.answers(false)(x.ClearExpire(p.Context()))
		p.takes(x, 5, true)
		p.answers(true)(x.Expire(p.Context(), p.per))
		p.checkExpires(x)
	}},
	{name: "E5: a keep-alive lets go of what nobody uses", run: func(p *permitsWorld) {
		x := p.config.New(p.T, 1)[0]
		r := rateOf(5, p.per)
		r.KeepAlive = p.per
		p.must(x.SetRate(p.Context(), r))
		p.checkExpires(x)
	}},
	{name: "E5: a keep-alive is prolonged by use alone", needsBubble: true, run: func(p *permitsWorld) {
		x := p.config.New(p.T, 1)[0]
		r := rateOf(5, p.per)
		r.KeepAlive = 2 * p.per
		p.must(x.SetRate(p.Context(), r))
		for range 5 {
			time.Sleep(2*p.per - time.Nanosecond)
			p.takes(x, 1, true)
		}
		time.Sleep(p.per)
		p.checkAvailable(x, 5) // a query is not a use
		time.Sleep(p.per)
		_, err := x.Config(p.Context())
		p.fails(err, permits.ErrRateNotSet)
	}},
	{name: "E5: Delete lets all go at once", run: func(p *permitsWorld) {
		x := p.newObject(5, time.Hour)
		p.takes(x, 5, true)
		p.answers(true)(x.Delete(p.Context()))
		p.answers(false)(x.Delete(p.Context()))
		_, err := x.Config(p.Context())
		p.fails(err, permits.ErrRateNotSet)
		p.answers(true)(x.TrySetRate(p.Context(), rateOf(3, time.Hour)))
		p.checkAvailable(x, 3)
	}},
	{name: "E: concurrent clients acquire exactly as many as there are", run: func(p *permitsWorld) {
		all := p.config.New(p.T, 4)
		p.must(all[0].SetRate(p.Context(), rateOf(50, time.Hour)))
		var taken atomic.Int64
		var clients sync.WaitGroup
		for g := range goroutines {
			clients.Go(func() {
				for range 10 {
					switch ok, err := all[g%len(all)].TryAcquire(p.Context(), 1); {
					case err != nil:
						p.Error(err)
					case ok:
						taken.Add(1)
					}
				}
			})
		}
		clients.Wait()
		if got := taken.Load(); got != 50 {
			p.Fatalf("%d of 50 were acquired", got)
		}
	}},
	{name: "E: permits of a context that has ended are not taken", run: func(p *permitsWorld) {
		x := p.newObject(5, time.Hour)
		ctx, cancel := context.WithCancel(p.Context())
		cancel()
		p.fails(x.Acquire(ctx, 1), context.Canceled)
		p.checkAvailable(x, 5)
	}},
}
