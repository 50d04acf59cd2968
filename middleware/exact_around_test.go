package middleware

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// What a second rule refuses costs the first one nothing, also where the first is decided
// ahead of its backend: 49 of 50 requests are refused, and all but one permit is there.
func TestExactDeferredGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := newShared(t)
		deferred, err := limiter.NewDeferred(back, limiter.DeferredConfig{})
		if err != nil {
			t.Fatal(err)
		}
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{
			exactly(limitRule(t, "first", "*", rules.By{}, 1, 100), ""),
			exactly(limitRule(t, "second", "*", rules.By{}, 1, 1), rules.AwayClosed),
		}}, WithBackend(deferred), WithClock(func() time.Duration { return time.Duration(time.Now().UnixNano()) }))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- deferred.Run(ctx) }()
		for i := range 50 {
			if d := f.Check(search); d.Allowed != (i == 0) {
				t.Errorf("%d: %+v", i, d)
			}
			time.Sleep(7 * time.Millisecond)
		}
		time.Sleep(time.Second)
		stop()
		<-done
		first := f.rules.Load().rules[0].spec
		res, err := back.Memory.Do(t.Context(), limiter.Op{Quota: &first.limit.Quota, Name: "first", Key: "*", Ask: limiter.Ask{Kind: limiter.Peek}})
		if err != nil || res.Remaining != 99 {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

// Demand far beyond a limit does not reach the backend: what it denies is denied here
// until the time that it named.
func TestExactFarBeyondTheLimit(t *testing.T) {
	back := newShared(t)
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{exactly(limitRule(t, "r", "*", byNames("q"), 1, 4), "")}}, WithBackend(back))
	passed := 0
	for range 10_000 {
		if f.Check(search).Allowed {
			passed++
		}
	}
	if calls := len(back.asked()); passed != 4 || calls != 5 {
		t.Errorf("%d passed, by %d calls", passed, calls)
	}
	if s := f.Stats(); s.Remembered != 10_000-5 {
		t.Errorf("%+v", s)
	}
	f.now += 2 * time.Second
	f.Check(search)
	if calls := len(back.asked()); calls != 1 {
		t.Errorf("%d calls two seconds later", calls)
	}
}

// A client that has hung up is held to the limit all the same.
func TestExactHungUp(t *testing.T) {
	back := newShared(t)
	back.setErr(errors.New("i/o timeout"))
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{exactly(limitRule(t, "r", "*", rules.By{}, 1, 4), "")}}, WithBackend(back))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	r, passed := search, 0
	r.Context = gone
	for range 20 {
		if f.Check(r).Allowed {
			passed++
		}
	}
	if s := f.Stats(); passed != 4 || s.Undecided != 20 || f.BackendStats().Nodes != 0 {
		t.Errorf("%d passed: %+v", passed, s)
	}
}
