package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/limitertest"
	"github.com/hotparam/hotparam/rules"
)

func newLogins(t *testing.T, penalty time.Duration) *limiter.Limiter {
	t.Helper()
	backend, err := limiter.NewMemory(limiter.MemoryConfig{Algorithms: map[rules.Algorithm]limiter.Algorithm{Name: Backoff{}}})
	if err != nil {
		t.Fatal(err)
	}
	logins, err := limiter.New(backend, "logins", rules.Quota{
		Algorithm: Name, Rate: rules.Rate{N: 1, Per: time.Second}, Burst: 3, Penalty: penalty,
	})
	if err != nil {
		t.Fatal(err)
	}
	return logins
}

// The algorithm passes the tests for any algorithm.
func TestAlgorithm(t *testing.T) {
	limitertest.TestAlgorithm(t, Backoff{},
		rules.Quota{Algorithm: Name, Rate: rules.Rate{N: 1, Per: time.Second}, Burst: 3},
		rules.Quota{Algorithm: Name, Rate: rules.Rate{N: 1, Per: time.Hour}, Burst: 1000})
}

// Waiting, returns, penalties and the rest come with the interface.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logins := newLogins(t, 0)
		began := time.Now()
		for i, want := range []time.Duration{0, 1, 3, 7, 15, 23, 31} { // doubled three times, then steady
			if err := logins.Wait(t.Context(), "ada"); err != nil {
				t.Fatal(err)
			}
			if at := time.Since(began); at != want*time.Second {
				t.Errorf("try %d came after %v, want %v", i+1, at, want*time.Second)
			}
		}
		if d, err := logins.Allow(t.Context(), "ada"); err != nil || d.Allowed || d.RetryAfter != 8*time.Second || d.ResetAfter != 16*time.Second {
			t.Errorf("%+v, %v", d, err)
		}
		if d, err := logins.Allow(t.Context(), "bob"); err != nil || !d.Allowed {
			t.Errorf("somebody else: %+v, %v", d, err)
		}
		time.Sleep(16 * time.Second)
		if d, err := logins.Allow(t.Context(), "ada"); err != nil || !d.Allowed || d.ResetAfter != 2*time.Second {
			t.Errorf("anew: %+v, %v", d, err)
		}
	})
}

func TestBackoffWithPenalty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logins := newLogins(t, time.Minute)
		for i, want := range []rules.Reason{rules.ReasonWithin, rules.ReasonLimited, rules.ReasonLocked} {
			if d, err := logins.Allow(t.Context(), "ada"); err != nil || d.Reason != want {
				t.Errorf("try %d: %+v, %v, want %v", i+1, d, err, want)
			}
		}
		time.Sleep(time.Minute)
		if d, err := logins.Allow(t.Context(), "ada"); err != nil || !d.Allowed {
			t.Errorf("after the penalty: %+v, %v", d, err)
		}
	})
}
