package middleware

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// farShared is a backend that instances share, at a network round trip.
type farShared struct {
	*limiter.Memory
	trip time.Duration
}

func (s farShared) Do(ctx context.Context, op limiter.Op) (limiter.Result, error) {
	var results [1]limiter.Result
	err := s.DoAll(ctx, []limiter.Op{op}, results[:])
	return results[0], err
}

func (s farShared) DoAll(ctx context.Context, ops []limiter.Op, results []limiter.Result) error {
	time.Sleep(s.trip / 2)
	defer time.Sleep(s.trip / 2)
	return s.Memory.DoAll(ctx, ops, results)
}

var twentyASecond = rules.Rate{N: 20, Per: time.Second}

// impatient runs clients that return as soon as they are served, and give up after 0.2 to 1 s. It
// returns the number of served requests for each second.
func impatient(f *fixture, req Request, clients int, seconds int) []int {
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		by    = make([]int, seconds)
		start = time.Now()
	)
	for i := range clients {
		all.Go(func() {
			for time.Since(start) < time.Duration(seconds)*time.Second {
				ctx, leave := context.WithCancel(context.Background())
				timer := time.AfterFunc(time.Duration(200+800*i/clients)*time.Millisecond, leave)
				r := req
				r.Context = ctx
				if d := f.Check(r); !d.Allowed {
					time.Sleep(5 * time.Millisecond)
				} else if at := int(time.Since(start) / time.Second); at < seconds {
					mu.Lock()
					by[at]++
					mu.Unlock()
				}
				timer.Stop()
				leave()
			}
		})
	}
	all.Wait()
	return by
}

func sum(by []int) (n int) {
	for _, x := range by {
		n += x
	}
	return n
}

// Clients that give up before their turn leave it to the next. Nine tenths of a limit are used,
// for one bucket, for a key, for a hot key and over all instances.
func TestClientsGiveUp(t *testing.T) {
	rule := func(by rules.By, change func(*rules.Limit)) rules.Rule {
		r := waitRule(t, "r", by, twentyASecond, 1, 5*time.Second)
		if change != nil {
			change(r.Limit)
		}
		return r
	}
	log := func(l *rules.Limit) { l.Algorithm, l.Burst = rules.SlidingLog, 20 }
	hot := rule(byNames("q"), nil)
	hot.Hot = []rules.Threshold{rules.NewThreshold(rules.Rate{N: 100, Per: time.Second})}
	for name, r := range map[string]rules.Rule{
		"single":     rule(rules.By{}, nil),
		"keyed":      rule(byNames("q"), nil),
		"hot":        hot,
		"single log": rule(rules.By{}, log),
		"keyed log":  rule(byNames("q"), log),
		"queue": rule(rules.By{}, func(l *rules.Limit) {
			l.Algorithm, l.Burst, l.Shape = rules.LeakyBucket, 60, true
		}),
		"exact":         exactly(rule(byNames("q"), nil), ""),
		"exact log":     exactly(rule(byNames("q"), log), ""),
		"exact hot":     exactly(hot, ""),
		"exact, a lock": exactly(rule(byNames("q"), func(l *rules.Limit) { l.Penalty = time.Millisecond }), ""),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := running(t, []rules.Rule{r}, WithBackend(farShared{newShared(t).Memory, time.Millisecond}))
				if len(r.Hot) > 0 {
					f.heat(t, "r GET /s?q=1")
				}
				by := impatient(f, search, 40, 10)
				if n := sum(by[1:]); n < 9*18 || n > 9*20+20 {
					t.Errorf("served %v by second, want 18 to 20 in each", by)
				}
				s := f.Stats()
				if s.Waiting != 0 || s.Gone == 0 || s.Waited < s.Gone || s.Panics != 0 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// After a spike of clients that give up, the limit is served as before.
func TestSpikeOfClients(t *testing.T) {
	for name, r := range map[string]rules.Rule{
		"here":  waitRule(t, "r", rules.By{}, twentyASecond, 1, 5*time.Second),
		"exact": exactly(waitRule(t, "r", rules.By{}, twentyASecond, 1, 5*time.Second), ""),
	} {
		synctest.Test(t, func(t *testing.T) {
			f := running(t, []rules.Rule{r}, WithBackend(farShared{newShared(t).Memory, time.Millisecond}))
			var (
				all   sync.WaitGroup
				mu    sync.Mutex
				by    [30]int
				start = time.Now()
			)
			for i := range 22 * len(by) {
				clients := 1
				if i == 22*5 {
					clients += 150
				}
				for j := range clients {
					all.Go(func() {
						ctx, leave := context.WithCancel(t.Context())
						defer time.AfterFunc(time.Duration(500+1500*j/clients)*time.Millisecond, leave).Stop()
						defer leave()
						req := search
						req.Context = ctx
						d := f.Check(req)
						if at := int(time.Since(start) / time.Second); d.Allowed && at < len(by) {
							mu.Lock()
							by[at]++
							mu.Unlock()
						}
					})
				}
				time.Sleep(time.Second / 22)
			}
			all.Wait()
			for i, n := range by[1:] {
				if n < 18 {
					t.Errorf("%s: served %v by second, want 18 to 20 in each, also in second %d", name, by, i+1)
					break
				}
			}
		})
	}
}

// Instances take turns: one with few clients is served even if another one has many, and together
// they use up the limit.
func TestInstancesTakeTurns(t *testing.T) {
	for _, algorithm := range []rules.Algorithm{rules.TokenBucket, rules.SlidingLog} {
		synctest.Test(t, func(t *testing.T) {
			back := farShared{newShared(t).Memory, time.Millisecond}
			rule := exactly(waitRule(t, "r", rules.By{}, twentyASecond, 20, 5*time.Second), "")
			rule.Limit.Algorithm = algorithm
			var (
				served [2][]int
				all    sync.WaitGroup
			)
			for i, clients := range []int{60, 8} {
				f := running(t, []rules.Rule{rule}, WithBackend(back))
				all.Go(func() { served[i] = impatient(f, search, clients, 10) })
			}
			all.Wait()
			many, few := sum(served[0][1:]), sum(served[1][1:])
			if many+few < 9*18 || few < 9*6 {
				t.Errorf("%s: served %v and %v by second, want 18 to 20 together, and a third of it each at least", algorithm, served[0], served[1])
			}
		})
	}
}

// A request that needs several limits continues when it has its turn in each. If it gives up, its
// turns pass to the next of each line.
func TestTurnsOfSeveralLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := waitRule(t, "slow", byNames("q"), rules.Rate{N: 1, Per: time.Second}, 1, time.Minute)
		quick := exactly(waitRule(t, "quick", rules.By{}, tenASecond, 1, time.Minute), "")
		f := running(t, []rules.Rule{slow, quick}, WithBackend(newShared(t)))
		f.Check(search)
		start := time.Now()
		took := func(q string, patience time.Duration) chan time.Duration {
			ctx, leave := context.WithCancel(t.Context())
			time.AfterFunc(patience, leave)
			req := get("GET /s", "/s", "q="+q)
			req.Context = ctx
			passed := make(chan time.Duration, 1)
			go func() {
				if f.Check(req).Allowed {
					passed <- time.Since(start)
				} else {
					passed <- -1
				}
			}()
			synctest.Wait()
			return passed
		}
		gives := took("1", 150*time.Millisecond) // has its turn of quick after 100 ms, and never that of slow
		other := took("2", time.Minute)          // second in line for quick
		third := took("3", time.Minute)
		again := took("1", time.Minute) // second in line for slow
		for name, x := range map[string]struct {
			passed chan time.Duration
			want   time.Duration
		}{"gives up": {gives, -1}, "other": {other, 150 * time.Millisecond}, "third": {third, 200 * time.Millisecond}, "again": {again, time.Second}} {
			if got := <-x.passed; got != x.want {
				t.Errorf("%s: passed after %v, want %v", name, got, x.want)
			}
		}
	})
}

// A turn of a request that another limit then refuses passes to the next request.
func TestTurnOfARefusedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := busyRule(t, "busy", byNames("q"), 1, 0)
		f := running(t, []rules.Rule{waitRule(t, "line", rules.By{}, tenASecond, 1, time.Minute), busy})
		held := letIn(t, f, search)
		start := time.Now()
		refused := make(chan rules.Decision, 1)
		go func() { refused <- f.Check(search) }()
		synctest.Wait()
		if d := f.Check(get("GET /s", "/s", "q=2")); !d.Allowed || time.Since(start) != 100*time.Millisecond {
			t.Errorf("%+v after %v, want the turn of the one that is refused", d, time.Since(start))
		}
		if d := <-refused; d.Reason != rules.ReasonBusy {
			t.Errorf("%+v", d)
		}
		held.End(Cost{})
	})
}

// While the backend is unavailable, the waiting requests are decided by when_redis_is_away.
func TestLineWhileTheBackendIsAway(t *testing.T) {
	for away, want := range map[rules.OutagePolicy]string{
		rules.OutageLocal: "10 passed in 900ms", rules.OutageOpen: "10 passed in 100ms", rules.OutageClosed: "1 passed in 100ms",
	} {
		synctest.Test(t, func(t *testing.T) {
			back := newShared(t)
			f := running(t, []rules.Rule{exactly(waitRule(t, "r", rules.By{}, tenASecond, 1, time.Minute), away)}, WithBackend(back))
			f.Check(search)
			time.AfterFunc(50*time.Millisecond, func() { back.setErr(fmt.Errorf("gone")) })
			at, refused := passes(f, search, 10)
			if got := fmt.Sprintf("%d passed in %v", len(at), at[len(at)-1]); got != want {
				t.Errorf("%s: %s, want %s", away, got, want)
			}
			for _, d := range refused {
				if d.Reason != rules.ReasonUnavailable || d.Rule != "r" || d.RetryAfter <= 0 {
					t.Errorf("%+v", d)
				}
			}
			if s := f.Stats(); s.Waiting != 0 || int(s.Unavailable) != len(refused) {
				t.Errorf("%+v", s)
			}
		})
	}
}

// No request waits longer than its limit allows, whatever others take during its wait.
func TestNobodyWaitsForLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := newShared(t)
		rule := exactly(waitRule(t, "r", rules.By{}, tenASecond, 1, 500*time.Millisecond), "")
		f := running(t, []rules.Rule{rule}, WithBackend(back))
		f.Check(search)
		time.AfterFunc(50*time.Millisecond, func() {
			quota := f.rules.Load().rules[0].spec.quota.Load()
			back.Memory.Do(t.Context(), limiter.Op{Quota: quota, Name: "r", Key: "*", Request: limiter.Request{Kind: limiter.Charge, N: 20}})
		})
		start := time.Now()
		at, refused := passes(f, search, 4)
		if took := time.Since(start); len(at) != 1 || len(refused) != 3 || took > 500*time.Millisecond {
			t.Errorf("passed at %v, refused %+v, after %v", at, refused, took)
		}
		for _, d := range refused { // one that comes late may be refused before the charge
			if d.Reason != rules.ReasonLimited || d.RetryAfter <= 0 || d.Rule != "r" {
				t.Errorf("%+v", d)
			}
		}
	})
}
