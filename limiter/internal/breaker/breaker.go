// Package breaker keeps circuit breakers for the nodes of a service elsewhere. A node is
// away from its first failure until a probe succeeds, and only then: its owner makes
// probes that write, since a node that refuses writes may still answer reads. Meanwhile
// nobody else asks it, so an outage costs each request that is under way when it begins
// one time-out at most. Other nodes are not concerned.
//
// One call without an answer is no failure yet, since a node may stall for a moment: see
// silence.go.
//
// github.com/sony/gobreaker and github.com/cep21/circuit were weighed. They are asked before and after
// every call and share a lock or counters among all callers also while the service is well, and they
// probe by letting a caller's request through, which then waits for the time-out. A probe here is a
// write of its own, off the request path.
//
//	node.go    the state of one node
//	silence.go nodes that do not answer for a moment
//	log.go     what is logged, and how often
//	stats.go   a snapshot
package breaker

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Config is what a [Set] needs to know. All fields are required.
type Config[T any] struct {
	// Probe writes to the node that has sample, and returns nil if that succeeded. It
	// bounds its own time.
	Probe func(ctx context.Context, sample T) error
	// Back is called when a node has answered its probe and calls go to it again; nil is
	// nothing. It must not block, nor call the Set's methods.
	Back func()
	// Min and Max bound the time between two probes: the first, and what it doubles to.
	Min, Max time.Duration
	// Begun and Over are the log lines of an outage's two ends.
	Begun, Over string
	Logger      *slog.Logger
}

// Set is the breakers of all nodes of one service. Nodes go by names; a service that has
// but one node calls it "". It is safe for concurrent use, and while no node is away its
// readers share no lock.
type Set[T any] struct {
	Config[T]
	open    atomic.Int64 // nodes that are away
	doubted atomic.Int64 // nodes with a call that had no answer, and none since
	running atomic.Int64 // Runs
	probes  atomic.Uint64
	opened  chan struct{} // wakes Run; holds one

	mu    sync.Mutex
	nodes atomic.Pointer[map[string]*node[T]] // written under mu, by a copy
}

const (
	// maxNodes bounds the nodes that are known: of a cluster, its masters.
	maxNodes = 1024
	// maxProbes is how many probes are under way at a time.
	maxProbes = 16
)

// New makes breakers that are all closed. The Set's Run makes the probes.
func New[T any](c Config[T]) *Set[T] { return &Set[T]{Config: c, opened: make(chan struct{}, 1)} }

// Any reports whether any node is away.
func (s *Set[T]) Any() bool { return s.open.Load() > 0 }

func (s *Set[T]) find(name string) *node[T] {
	if nodes := s.nodes.Load(); nodes != nil {
		return (*nodes)[name]
	}
	return nil
}

// Away reports whether a node is away. Where no Run does, it makes the probe that is due,
// and waits for it.
func (s *Set[T]) Away(ctx context.Context, name string) bool {
	if !s.Any() {
		return false
	}
	n := s.find(name)
	if n == nil || !n.away.Load() {
		return false
	}
	if s.running.Load() == 0 {
		s.probe(ctx, n)
	}
	return n.away.Load()
}

// Failed records that a call to a node, which began at began, failed: the node is away from
// now on. sample is what to probe with. Failed ignores a call that began before the last
// outage ended.
func (s *Set[T]) Failed(name string, began time.Time, cause error, sample T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.known(name); n != nil {
		s.fail(n, began, cause, sample)
	}
}

// fail is Failed for a known node. The caller holds the lock.
func (s *Set[T]) fail(n *node[T], began time.Time, cause error, sample T) {
	if n.away.Load() || began.Before(n.since) {
		return
	}
	now := time.Now()
	if n.delay = min(2*n.delay, s.Max); n.delay == 0 || now.Sub(n.since) > s.Max {
		n.delay = s.Min // the last outage was long ago
	}
	n.since, n.next = now, now.Add(jittered(n.delay))
	n.sample, n.cause = sample, cause
	s.settle(n)
	n.away.Store(true)
	s.open.Add(1)
	s.sayAway(n, now)
	select {
	case s.opened <- struct{}{}:
	default:
	}
}

// known returns the node of that name, which it makes; nil if there is no room.
func (s *Set[T]) known(name string) *node[T] {
	if n := s.find(name); n != nil {
		return n
	}
	next := make(map[string]*node[T])
	if nodes := s.nodes.Load(); nodes != nil {
		for name, n := range *nodes {
			next[name] = n
		}
	}
	for name, n := range next { // one that is not away loses only its back-off
		if len(next) < maxNodes {
			break
		}
		if !n.away.Load() {
			s.settle(n)
			delete(next, name)
		}
	}
	if len(next) >= maxNodes {
		return nil
	}
	n := &node[T]{name: name}
	next[name] = n
	s.nodes.Store(&next)
	return n
}

// Run makes the probes until the context ends.
func (s *Set[T]) Run(ctx context.Context) {
	s.running.Add(1)
	defer s.running.Add(-1)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		if !s.Any() {
			select {
			case <-ctx.Done():
			case <-s.opened:
			}
			continue
		}
		now := time.Now()
		due, next := s.due(now)
		if len(due) > 0 {
			s.probeAll(ctx, due)
			continue
		}
		timer.Reset(max(next, time.Millisecond)) // do not spin while another goroutine makes a probe that is due
		select {
		case <-ctx.Done():
		case <-s.opened:
		case <-timer.C:
		}
	}
}

// due returns the nodes to probe now, at most maxProbes, and else in how long the first
// one is.
func (s *Set[T]) due(now time.Time) (due []*node[T], next time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next = s.Max
	for _, n := range *s.nodes.Load() {
		if !n.away.Load() {
			continue
		}
		if in := n.due(now); in > 0 || n.probing.Load() {
			next = min(next, in)
		} else if due = append(due, n); len(due) == maxProbes {
			break
		}
	}
	return due, next
}

func (s *Set[T]) probeAll(ctx context.Context, due []*node[T]) {
	var all sync.WaitGroup
	for _, n := range due {
		all.Go(func() { s.probe(ctx, n) })
	}
	all.Wait()
}

// probe probes a node that is away if that is due and nobody else does.
func (s *Set[T]) probe(ctx context.Context, n *node[T]) {
	if !n.probing.CompareAndSwap(false, true) {
		return
	}
	defer n.probing.Store(false)
	s.mu.Lock()
	wait := !n.away.Load() || n.due(time.Now()) > 0
	s.mu.Unlock()
	if wait {
		return
	}
	s.probes.Add(1)
	err := s.Probe(ctx, n.sample)
	if err != nil && ctx.Err() != nil {
		return // the caller gave up
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if err != nil {
		n.delay = min(2*n.delay, s.Max)
		n.next, n.cause = now.Add(jittered(n.delay)), err
		s.sayAway(n, now)
		return
	}
	s.sayBack(n, now)
	n.since = now
	n.away.Store(false)
	s.open.Add(-1)
	if s.Back != nil {
		s.Back()
	}
}

// UntilProbe returns how long until a node that is away is probed next.
func (s *Set[T]) UntilProbe(name string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.find(name); n != nil && n.away.Load() {
		return n.due(time.Now())
	}
	return 0
}

// jittered returns 0.75 to 1.25 of d, so that instances do not probe in step. The mean is d,
// since [Set.UntilProbe] tells clients when to come back; base.Backoff draws from below d.
func jittered(d time.Duration) time.Duration { return d*3/4 + rand.N(d/2+1) }
