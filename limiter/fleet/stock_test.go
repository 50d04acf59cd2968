package fleet_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/limiter/fleet"
	"github.com/hotparam/hotparam/rules"
)

// scripted is a Lender that answers as a test says, and records what it was asked.
type scripted struct {
	mu     sync.Mutex
	asks   []fleet.Ask
	answer func(fleet.Ask) fleet.Answer
}

func (s *scripted) Settle(_ context.Context, asks []fleet.Ask, answers []fleet.Answer) {
	s.mu.Lock()
	s.asks = append(s.asks, asks...)
	answer := s.answer
	s.mu.Unlock()
	for i := range asks {
		answers[i] = answer(asks[i])
	}
}

func (s *scripted) set(answer func(fleet.Ask) fleet.Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// lastAsk returns the last ask and the number of all.
func (s *scripted) lastAsk() (fleet.Ask, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asks[len(s.asks)-1], len(s.asks)
}

// grant answers as a bucket that has plenty.
func grant(a fleet.Ask) fleet.Answer {
	return fleet.Answer{Granted: a.Want, Valid: true, Incarnation: 7, Instances: 1}
}

func (s *scripted) Patience() time.Duration { return 50 * time.Millisecond }

func fail(fleet.Ask) fleet.Answer { return fleet.Answer{Err: errors.New("away")} }

func perSecond(n int64) *rules.Quota {
	return &rules.Quota{Rate: rules.Rate{N: n, Per: time.Second}, Burst: n}
}

// run runs a fleet of one stock in virtual time.
func run(t *testing.T, outage rules.OutagePolicy, owing bool, do func(t *testing.T, lender *scripted, f *fleet.Fleet, s *fleet.Stock)) {
	synctest.Test(t, func(t *testing.T) {
		lender := &scripted{answer: grant}
		f, err := fleet.New(fleet.Config{Lender: lender, Timeout: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var work sync.WaitGroup
		work.Go(func() { _ = f.Run(ctx) })
		defer work.Wait()
		defer cancel() // even if do fails: Run would keep virtual time going for ever
		synctest.Wait()
		do(t, lender, f, f.Stock(fleet.StockConfig{Name: "users", Key: "ann", Quota: perSecond(1000), Outage: outage, Owing: owing}))
	})
}

// borrow takes permits until some are held.
func borrow(t *testing.T, s *fleet.Stock) {
	t.Helper()
	for range 5 {
		if d := s.Borrow(t.Context(), 1); !d.Allowed || d.Reason != rules.ReasonWithin {
			t.Fatalf("%+v", d)
		}
	}
	if s.Remaining() < 2 {
		t.Fatalf("%d permits are held", s.Remaining())
	}
}

// Permits that are held end after four periods without an answer. Then the policy decides, and
// what it admits is stated once the Lender is back.
func TestStockEnds(t *testing.T) {
	for outage, want := range map[rules.OutagePolicy]rules.Reason{
		rules.OutageOpen: rules.ReasonOpen, rules.OutageClosed: rules.ReasonUnavailable, rules.OutageLocal: rules.ReasonLimited,
	} {
		run(t, outage, false, func(t *testing.T, lender *scripted, _ *fleet.Fleet, s *fleet.Stock) {
			borrow(t, s)
			lender.set(fail)
			version := s.Version()
			time.Sleep(60 * time.Millisecond)
			if !s.Take(1) {
				t.Errorf("%s: no permit is left one period after the answer", outage)
			}
			time.Sleep(200 * time.Millisecond)
			if s.Take(1) {
				t.Errorf("%s: a permit of a stock that has ended", outage)
			}
			s.Return(1, version)
			if s.Take(1) {
				t.Errorf("%s: a permit that was returned to a stock that has ended", outage)
			}
			d := s.Borrow(t.Context(), 1)
			if d.Reason != want || d.Allowed != (outage == rules.OutageOpen) {
				t.Errorf("%s: %+v", outage, d)
			}
			time.Sleep(100 * time.Millisecond)
			local := 0
			for range 2000 {
				if outage == rules.OutageLocal && s.Borrow(t.Context(), 1).Allowed {
					local++
				}
			}
			if outage == rules.OutageLocal && local == 0 {
				t.Error("the instance admits nothing by itself")
			}
			before, _ := lender.lastAsk()
			lender.set(grant)
			time.Sleep(2 * time.Second)
			after, _ := lender.lastAsk()
			if outage == rules.OutageLocal && after.Spent < int64(local) || before.Silent == 0 || after.Silent != 0 {
				t.Errorf("%s: %d admitted alone; %+v, then %+v", outage, local, before, after)
			}
			borrow(t, s)
		})
	}
}

// A stock ends even if it cannot be settled, since many settlements of others are under way.
func TestStockEndsUnsettled(t *testing.T) {
	run(t, "", false, func(t *testing.T, lender *scripted, f *fleet.Fleet, s *fleet.Stock) {
		borrow(t, s)
		hung := make(chan struct{})
		defer close(hung)
		lender.set(func(a fleet.Ask) fleet.Answer {
			<-hung
			return grant(a)
		})
		for range 20 { // more than are settled at a time
			go f.Stock(fleet.StockConfig{Name: "users", Key: "other", Quota: perSecond(1000)}).Borrow(t.Context(), 1)
			synctest.Wait() // each in a call of its own
		}
		time.Sleep(time.Second)
		if s.Take(1) {
			t.Error("a permit of a stock that has ended")
		}
	})
}

// Permits held under another quota are void, and so are those that are returned to them.
func TestStockOfAnotherQuota(t *testing.T) {
	run(t, "", false, func(t *testing.T, lender *scripted, _ *fleet.Fleet, s *fleet.Stock) {
		borrow(t, s)
		lender.set(func(fleet.Ask) fleet.Answer { return fleet.Answer{Valid: true, Incarnation: 7, Wait: time.Second} })
		version := s.Version()
		s.SetQuota(perSecond(10))
		if s.Take(1) {
			t.Error("a permit of another quota")
		}
		s.Return(1, version)
		if s.Take(1) {
			t.Error("a permit that was returned to another quota")
		}
		if d := s.Borrow(t.Context(), 1); d.Allowed || d.RetryAfter != time.Second || d.Limit != 10 {
			t.Errorf("%+v", d)
		}
	})
}

// A stock with less than a request in two periods asks for each request and holds nothing, and is
// settled seldom besides.
func TestRareRequests(t *testing.T) {
	run(t, "", false, func(t *testing.T, lender *scripted, _ *fleet.Fleet, s *fleet.Stock) {
		borrow(t, s)
		time.Sleep(time.Second)
		_, before := lender.lastAsk()
		const requests = 50
		for range requests {
			if d := s.Borrow(t.Context(), 1); !d.Allowed {
				t.Fatalf("%+v", d)
			}
			if ask, _ := lender.lastAsk(); ask.Want > 1 || ask.Hold > 0 {
				t.Fatalf("%+v", ask)
			}
			time.Sleep(200 * time.Millisecond)
		}
		last, after := lender.lastAsk()
		if asks := after - before; asks > requests+2 || last.Demand < 4 || last.Demand > 6 {
			t.Errorf("%d settlements for %d requests in 10 s: %+v", asks, requests, last)
		}
		lender.set(fail)
		if d := s.Borrow(t.Context(), 1); d.Reason != rules.ReasonLimited {
			t.Errorf("one settlement that fails is taken for an outage: %+v", d)
		}
	})
}

// A stock without demand returns what it holds and is settled no more, until it has demand.
func TestIdleStock(t *testing.T) {
	run(t, "", false, func(t *testing.T, lender *scripted, f *fleet.Fleet, s *fleet.Stock) {
		borrow(t, s)
		time.Sleep(10 * time.Second)
		last, n := lender.lastAsk()
		if last.Hold != 0 || last.Want != 0 || last.Demand != 0 || f.Stats().Active != 0 {
			t.Errorf("%+v, %+v", last, f.Stats())
		}
		time.Sleep(time.Hour)
		if _, now := lender.lastAsk(); now != n {
			t.Errorf("%d settlements of an idle stock", now-n)
		}
		borrow(t, s)
		lender.mu.Lock()
		defer lender.mu.Unlock()
		if first := lender.asks[n]; first.Incarnation != 0 || first.Spent != 0 || first.Hold != 0 || first.Want < 1 {
			t.Errorf("it begins with %+v", first)
		}
	})
}

// A cost that was not held is owed, and stated once.
func TestStockOwes(t *testing.T) {
	run(t, "", true, func(t *testing.T, lender *scripted, _ *fleet.Fleet, s *fleet.Stock) {
		for range 3 { // whether there is a permit
			if d := s.Borrow(t.Context(), 0); !d.Allowed {
				t.Fatalf("%+v", d)
			}
		}
		s.Charge(5000)
		if s.Take(0) {
			t.Error("a permit, although some are owed")
		}
		time.Sleep(200 * time.Millisecond)
		if last, _ := lender.lastAsk(); last.Spent != 5000 || !last.Owing {
			t.Errorf("%+v", last)
		}
		if d := s.Borrow(t.Context(), 0); !d.Allowed {
			t.Errorf("what the bucket was charged with is still owed here: %+v", d)
		}
	})
}

// All permits are returned when Run ends, and each instance decides alone without it.
func TestFleetEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lender := &scripted{answer: grant}
		f, err := fleet.New(fleet.Config{Lender: lender, Instances: func() int { return 4 }})
		if err != nil {
			t.Fatal(err)
		}
		s := f.Stock(fleet.StockConfig{Name: "users", Key: "ann", Quota: perSecond(1000)})
		alone := 0
		time.Sleep(time.Millisecond)
		s.Borrow(t.Context(), 1)
		time.Sleep(time.Second)
		for range 1000 {
			if s.Borrow(t.Context(), 1).Allowed {
				alone++
			}
		}
		if alone != 250 { // a fourth of the burst, earned in a second
			t.Errorf("%d admitted without Run", alone)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var work sync.WaitGroup
		work.Go(func() { _ = f.Run(ctx) })
		time.Sleep(time.Second)
		if last, n := lender.lastAsk(); n != 1 || last.Spent != 250 {
			t.Errorf("what was admitted alone: %d asks, %+v", n, last)
		}
		borrow(t, s)
		cancel()
		work.Wait()
		if last, _ := lender.lastAsk(); last.Hold != 0 || last.Want != 0 || last.Spent != 5 || s.Take(1) {
			t.Errorf("%+v", last)
		}
	})
}

// Without the Lender, all classes of priority have one part of the limit, and the others leave the
// most important one its reserve.
func TestClassesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := fleet.New(fleet.Config{Lender: &scripted{answer: fail}, Instances: func() int { return 4 }})
		if err != nil {
			t.Fatal(err)
		}
		stocks := f.Stocks(fleet.StockConfig{Name: "users", Key: "ann", Quota: perSecond(1000), Outage: rules.OutageLocal}, 2)
		for _, s := range stocks {
			if d := s.Borrow(t.Context(), 1); d.Allowed {
				t.Fatalf("it begins empty, but: %+v", d)
			}
		}
		time.Sleep(time.Second)
		var admitted [2]int
		for _, class := range []int{1, 0} {
			for range 1000 {
				if stocks[class].Borrow(t.Context(), 1).Allowed {
					admitted[class]++
				}
			}
		}
		if admitted != [2]int{125, 125} { // of a fourth of the burst
			t.Errorf("%v admitted alone", admitted)
		}
	})
}

// Requests wait in the order in which they came, for no longer than they may, and every settlement
// states them. A place that is left passes to the next request.
func TestQueue(t *testing.T) {
	run(t, "", false, func(t *testing.T, lender *scripted, _ *fleet.Fleet, s *fleet.Stock) {
		lender.set(func(fleet.Ask) fleet.Answer { return fleet.Answer{Valid: true, Incarnation: 7} })
		start := time.Now()
		queue := func(within time.Duration) *fleet.Waiter {
			t.Helper()
			w, d := s.Queue(1, within)
			if w == nil || !d.Allowed || d.Reason != rules.ReasonWithin {
				t.Fatalf("%+v", d)
			}
			return w
		}
		got := func(w *fleet.Waiter) string {
			synctest.Wait()
			select {
			case <-w.Done():
			default:
				return "waits"
			}
			if d, _ := w.Denied(); d != nil {
				return "denied"
			}
			return "served"
		}
		first, second, brief, third, fourth := queue(time.Second), queue(time.Second), queue(100*time.Millisecond), queue(time.Second), queue(time.Second)
		time.Sleep(90 * time.Millisecond)
		if last, _ := lender.lastAsk(); last.Want < 5 || got(brief) != "waits" {
			t.Errorf("%+v, while 5 requests wait; one %s", last, got(brief))
		}
		if <-brief.Done(); time.Since(start) > 110*time.Millisecond {
			t.Errorf("a request that may wait 100ms waited %v", time.Since(start))
		}
		if d, _ := brief.Denied(); got(brief) != "denied" || d.Reason != rules.ReasonLimited || d.RetryAfter <= 0 {
			t.Errorf("%+v", d)
		}
		_ = second.Leave(t.Context())
		lender.set(func(a fleet.Ask) fleet.Answer {
			return fleet.Answer{Granted: min(a.Want, 1), Valid: true, Incarnation: 7}
		})
		for got(first) == "waits" {
			time.Sleep(time.Millisecond)
		}
		if s.Take(1) || got(first) != "served" || got(second) != "denied" || got(third) != "waits" {
			t.Errorf("%s, %s, %s", got(first), got(second), got(third))
		}
		_ = first.Leave(t.Context())
		_ = first.Leave(t.Context())
		if got(third) != "served" || got(fourth) != "waits" {
			t.Errorf("a permit that is given back: %s, %s", got(third), got(fourth))
		}
		time.Sleep(time.Second)
		if got(fourth) != "served" {
			t.Error(got(fourth))
		}
	})
}

// A request that would wait too long is refused at once, and learns when it could have come.
func TestQueueRefuses(t *testing.T) {
	run(t, "", false, func(t *testing.T, lender *scripted, _ *fleet.Fleet, s *fleet.Stock) {
		const shut = 300 * time.Millisecond
		lender.set(func(a fleet.Ask) fleet.Answer {
			return fleet.Answer{Granted: min(a.Want, 1), Valid: true, Incarnation: 7, Wait: shut}
		})
		time.Sleep(10 * time.Millisecond) // the fleet looks for stocks at most each ms
		borrow1 := func() *fleet.Waiter {
			w, _ := s.Queue(1, time.Second)
			return w
		}
		brief, _ := s.Queue(1, 0)
		synctest.Wait()
		long, late := borrow1(), borrow1()
		<-brief.Done()
		if d, _ := brief.Denied(); d != nil {
			t.Errorf("the first request: %+v", d)
		}
		const ahead = 2 * time.Millisecond // two requests, at the rate of the limit
		for within, retry := range map[time.Duration]time.Duration{0: shut + ahead, 200 * time.Millisecond: 100*time.Millisecond + ahead} {
			if w, d := s.Queue(1, within); w != nil || d.Allowed || d.RetryAfter != retry || d.Limit != 1000 {
				t.Errorf("a request that may wait %v: %+v", within, d)
			}
		}
		start := time.Now()
		borrow1() // so that the line lasts
		<-long.Done()
		<-late.Done()
		if took := time.Since(start); took != 2*shut {
			t.Errorf("two requests waited %v", took)
		}
		many := 0
		for {
			w, d := s.Queue(1, time.Second)
			if w == nil {
				if d.RetryAfter <= 0 || d.RetryAfter > 2*shut {
					t.Errorf("after %d: %+v", many, d)
				}
				break
			}
			many++
		}
		if many < 1 || many > 10 { // some are served each 300 ms
			t.Errorf("%d may wait for a second", many)
		}
	})
}

// While the Lender is unavailable, the line is served from this instance's part.
func TestQueueAlone(t *testing.T) {
	for _, outage := range []rules.OutagePolicy{rules.OutageOpen, rules.OutageClosed, rules.OutageLocal} {
		run(t, outage, false, func(t *testing.T, lender *scripted, _ *fleet.Fleet, s *fleet.Stock) {
			lender.set(fail)
			start, passed := time.Now(), 0
			var all []*fleet.Waiter
			for range 10 {
				w, _ := s.Queue(1, time.Second)
				all = append(all, w)
			}
			var before time.Duration
			for _, w := range all {
				<-w.Done()
				took := time.Since(start)
				if took < before {
					t.Errorf("%s: after %v, the request before it after %v", outage, took, before)
				}
				before = took
				if d, _ := w.Denied(); d == nil {
					passed++
				}
			}
			want := map[rules.OutagePolicy]int{rules.OutageOpen: 10, rules.OutageLocal: 10}[outage]
			if passed != want || before < 200*time.Millisecond || before > 500*time.Millisecond {
				t.Errorf("%s: %d passed within %v", outage, passed, before)
			}
		})
	}
}
