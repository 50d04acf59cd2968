package limitertest

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/rules"
)

// SemaphoreConfig describes a [semaphore.Acquirer] to the suite.
type SemaphoreConfig struct {
	// New returns a running fair semaphore whose permits are held until they are released.
	New func(t *testing.T) semaphore.Acquirer
	// Synctest runs each case in a bubble of testing/synctest, in which it is known who waits. It
	// is for semaphores that wait for nothing outside the bubble.
	Synctest bool
}

// TestSemaphore runs the suite of [semaphore.Acquirer], line F7 of the checklist in
// checklist_table_test.go.
func TestSemaphore(t *testing.T, c SemaphoreConfig) {
	for _, x := range append(semaphoreCases, semaphoreWaitCases...) {
		if x.needsBubble && !c.Synctest {
			continue
		}
		t.Run(x.name, func(t *testing.T) {
			run := func(t *testing.T) { x.run(&semaphoreWorld{T: t, Acquirer: c.New(t)}) }
			if c.Synctest {
				synctest.Test(t, run)
			} else {
				run(t)
			}
		})
	}
}

type semaphoreCase struct {
	name        string
	run         func(*semaphoreWorld)
	needsBubble bool // whether the case must know who waits
}

// semaphoreWorld is the world of one case.
type semaphoreWorld struct {
	*testing.T
	semaphore.Acquirer
}

func (s *semaphoreWorld) acquire(ask semaphore.Request) (semaphore.Lease, rules.Decision) {
	s.Helper()
	lease, d, err := s.Acquire(s.Context(), "key", ask)
	if err != nil {
		s.Fatal(err)
	}
	if (lease != semaphore.Lease{}) != d.Allowed {
		s.Fatalf("lease %v, decision %+v", lease, d)
	}
	return lease, d
}

// wantHeld fails unless the ask is granted.
func (s *semaphoreWorld) wantHeld(ask semaphore.Request) semaphore.Lease {
	s.Helper()
	lease, d := s.acquire(ask)
	if !d.Allowed {
		s.Fatalf("%+v: %+v", ask, d)
	}
	return lease
}

// wantDenied fails unless the ask is denied.
func (s *semaphoreWorld) wantDenied(ask semaphore.Request) rules.Decision {
	s.Helper()
	lease, d := s.acquire(ask)
	if d.Allowed {
		lease.Release()
		s.Fatalf("%+v: %+v", ask, d)
	}
	if d.Reason != rules.ReasonBusy || d.Limit != ask.Permits || d.Remaining < 0 {
		s.Fatalf("%+v: %+v", ask, d)
	}
	return d
}

// startWaiter starts a waiter that sends its name to order when it is served, and returns once it
// waits. It works only in a case with needsBubble.
func (s *semaphoreWorld) startWaiter(all *sync.WaitGroup, order chan<- string, name string, ask semaphore.Request) {
	all.Go(func() {
		lease, d, err := s.Acquire(s.Context(), "key", ask)
		if err != nil || !d.Allowed {
			s.Errorf("%s: %+v, error %v", name, d, err)
			return
		}
		order <- name
		lease.Release()
	})
	synctest.Wait()
}

// inOrder fails unless waiters that arrive one after the other are served in the wanted order
// once held is released. It works only in a case with needsBubble.
func (s *semaphoreWorld) inOrder(held semaphore.Lease, names string, ask func(i int) semaphore.Request, want string) {
	s.Helper()
	var all sync.WaitGroup
	order := make(chan string, len(names))
	for i, name := range names {
		s.startWaiter(&all, order, string(name), ask(i))
	}
	held.Release()
	all.Wait()
	close(order)
	got := ""
	for name := range order {
		got += name
	}
	if got != want {
		s.Fatalf("served in the order %s, want %s", got, want)
	}
}
