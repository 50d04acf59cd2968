package middleware

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Demand far beyond a limit does not reach the backend: a key that the backend denies is denied
// here until the time that it named.
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

// A client that has hung up still counts against the limit.
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
