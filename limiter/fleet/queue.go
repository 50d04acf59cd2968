package fleet

import (
	"container/list"
	"context"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// line holds the requests that wait for permits of a stock. The first one gets the next permit. It
// is guarded by the stock's mu.
//
// It is not one of [limiter.WaitLines]. Those hold reservations, and know when each is due. Permits
// of a stock come with an answer, some at a time, and there is no saying when.
type line struct {
	list.List             // of *Waiter
	served    int64       // clock's time at which permits were last handed out, or the first request came
	spacing   int64       // recent ns from one permit to the next; 0 if unknown
	again     *time.Timer // serves the line while the Lender is unavailable
}

// Waiter is a request that waits for permits of a stock.
type Waiter struct {
	stock *Stock
	n     int64
	until int64         // clock's time until which it may wait while the bucket has none
	place *list.Element // nil once the wait has ended; guarded by the stock's mu
	timer *time.Timer   // ends the wait
	done  chan struct{}

	// These are set before done is closed.
	decision rules.Decision
	version  int64 // version of the stock that the permits were taken from
}

// Queue puts a request for n permits into the stock's line, and makes the stock settle. The request
// may wait within a time and, if the bucket may have permits, at least for Lender.Patience. The
// decision is allowed, with the expected wait as its Delay. If the request would wait too long, it
// is denied, without a Waiter. The caller calls Leave if it does not use the permits.
func (s *Stock) Queue(n int64, within time.Duration) (*Waiter, rules.Decision) {
	within = max(0, within)
	s.mu.Lock()
	now := s.fleet.clock.now()
	w := &Waiter{stock: s, n: n, until: now + int64(within), done: make(chan struct{})}
	shut, turn := s.shut.Load(), s.expectTurn(now)
	if late := max(shut, now) - w.until; late > 0 || within > 0 && turn > w.until {
		defer s.mu.Unlock()
		s.missed.Add(n)
		return nil, s.denied(time.Duration(max(late, turn-w.until)))
	}
	if s.line.Len() == 0 {
		s.line.served = now
	}
	w.place = s.line.PushBack(w)
	s.waiting.Add(max(n, 1))
	earlier := s.hurry(now)
	if s.serve(now); w.place != nil {
		w.timer = time.AfterFunc(max(within, s.fleet.cfg.Lender.Patience()), w.expire)
	}
	s.mu.Unlock()
	s.fleet.wakeFor(s)
	if earlier {
		s.fleet.signal()
	}
	d := s.Allowed()
	d.Delay = time.Duration(turn - now)
	return w, d
}

// expectTurn returns the clock's time at which a request that comes now is expected to get its
// permits. As long as no answer is known, the bucket may be full. The caller holds mu.
func (s *Stock) expectTurn(now int64) int64 {
	q, free := s.quota.Load(), s.free.Load()
	if s.account.incarnation == 0 {
		free = q.Burst
	}
	pace := max(s.line.spacing, int64(q.Rate.Interval()))
	return max(now, s.shut.Load()) + max(0, s.waiting.Load()-free)*pace
}

// serve hands out permits in the order of the line. It refuses the requests that may not wait
// until the bucket has more. The caller holds mu.
func (s *Stock) serve(now int64) {
	l, served := &s.line, int64(0)
	for l.Len() > 0 {
		w := l.Front().Value.(*Waiter)
		if b := s.alone.Load(); b != nil {
			d := s.decideAlone(b, w.n)
			if !d.Allowed && d.RetryAfter > 0 && now+int64(d.RetryAfter) <= w.until {
				s.serveAfter(d.RetryAfter)
				break
			}
			w.end(d, -1)
		} else if s.Take(w.n) {
			w.end(s.Allowed(), s.version.Load())
		} else {
			break
		}
		served += max(w.n, 1)
	}
	if served > 0 {
		if took := (now - l.served) / served; l.spacing == 0 {
			l.spacing = took
		} else {
			l.spacing += (took - l.spacing) / 4
		}
		l.served = now
	}
	if l.Len() == 0 {
		l.spacing = 0
	} else if shut := s.shut.Load(); shut > now && s.alone.Load() == nil {
		for e := l.Front(); e != nil; {
			w := e.Value.(*Waiter)
			if e = e.Next(); w.until < shut {
				w.end(s.denied(time.Duration(shut-max(w.until, now))), -1)
			}
		}
	}
}

// serveAfter serves the line again after a time. The caller holds mu.
func (s *Stock) serveAfter(d time.Duration) {
	if s.line.again != nil {
		s.line.again.Reset(d)
		return
	}
	s.line.again = time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.serve(s.fleet.clock.now())
	})
}

// end ends the wait. The caller holds the stock's mu.
func (w *Waiter) end(d rules.Decision, version int64) {
	s := w.stock
	s.line.Remove(w.place)
	s.waiting.Add(-max(w.n, 1))
	if !d.Allowed {
		s.missed.Add(w.n)
	}
	if w.timer != nil {
		w.timer.Stop()
	}
	w.place, w.decision, w.version = nil, d, version
	close(w.done)
}

// expire ends a wait that lasted too long.
func (w *Waiter) expire() {
	s := w.stock
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.place != nil {
		w.end(s.denied(max(period(s.quota.Load(), 0), time.Duration(s.line.spacing))), -1)
	}
}

// Done returns a channel that is closed when the wait has ended.
func (w *Waiter) Done() <-chan struct{} { return w.done }

// Denied returns nil if the request got its permits, or the denial that ended its wait. The error
// is always nil.
func (w *Waiter) Denied() (*rules.Decision, error) {
	if w.decision.Allowed {
		return nil, nil
	}
	return &w.decision, nil
}

// Leave ends the wait. Permits that the request has got go to the next one, or back into the
// stock. The error is always nil.
func (w *Waiter) Leave(context.Context) error {
	w.expire()
	if w.decision.Allowed {
		w.decision.Allowed = false
		w.stock.Return(w.n, w.version)
	}
	return nil
}
