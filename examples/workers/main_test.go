package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// There are sixty jobs of three customers, and one customer has most of them. That customer gets
// half of the workers, and no job starts earlier than the agreed rate allows.
func TestPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend, err := limiter.NewMemory(limiter.MemoryConfig{})
		if err != nil {
			t.Fatal(err)
		}
		quota := rules.Quota{Rate: rules.Rate{N: 10, Per: time.Second}, Burst: 2}
		pace, err := limiter.New(backend, "jobs", quota)
		if err != nil {
			t.Fatal(err)
		}
		pool, err := NewPool(4, pace)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		running, most := map[string]int{}, map[string]int{}
		began := map[string][]time.Time{}
		jobs := make(chan Job)
		go func() {
			defer close(jobs)
			for i := range 60 {
				customer := []string{"acme", "acme", "acme", "acme", "bolt", "cern"}[i%6]
				jobs <- Job{customer, func(context.Context) error {
					mu.Lock()
					running[customer]++
					most[customer] = max(most[customer], running[customer])
					began[customer] = append(began[customer], time.Now())
					mu.Unlock()
					time.Sleep(150 * time.Millisecond)
					mu.Lock()
					running[customer]--
					mu.Unlock()
					return nil
				}}
			}
		}()
		pool.Run(t.Context(), jobs, func(job Job, err error) { t.Errorf("%s: %v", job.Customer, err) })
		if most["acme"] != 2 {
			t.Errorf("acme had %d workers at a time, want half of four", most["acme"])
		}
		if len(began["acme"]) != 40 || len(began["bolt"]) != 10 || len(began["cern"]) != 10 {
			t.Errorf("not all jobs were done: %v", began)
		}
		for customer, starts := range began {
			for i := range starts { // in any second a burst and what the rate gives
				in := 0
				for _, at := range starts[i:] {
					if at.Sub(starts[i]) < time.Second {
						in++
					}
				}
				if in > 12 {
					t.Errorf("%s began %d jobs within a second", customer, in)
				}
			}
		}
	})
}

func TestPoolEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend, err := limiter.NewMemory(limiter.MemoryConfig{})
		if err != nil {
			t.Fatal(err)
		}
		pace, err := limiter.New(backend, "jobs", rules.Quota{Rate: rules.Rate{N: 1, Per: time.Hour}})
		if err != nil {
			t.Fatal(err)
		}
		pool, err := NewPool(2, pace)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("closing time"))
		defer cancel()
		jobs := make(chan Job, 3)
		var done, failed atomic.Int64
		for range cap(jobs) {
			jobs <- Job{"acme", func(context.Context) error { done.Add(1); return nil }}
		}
		close(jobs)
		pool.Run(ctx, jobs, func(Job, error) { failed.Add(1) })
		if done.Load() != 1 || failed.Load() != 2 {
			t.Errorf("%d jobs were done and %d told as failed, want 1 and 2", done.Load(), failed.Load())
		}
	})
}
