// Package breaker keeps one circuit breaker for each node of a remote service. A node is
// unavailable from its first failure until a probe succeeds. Nothing else closes its breaker.
// The owner's probes write, since a node that refuses writes may still answer reads. While a
// node is unavailable only probes call it, so an outage costs each request in flight at its
// beginning at most one time-out. Other nodes are not affected.
//
// A single call without an answer is not a failure yet, since a node may stall for a moment:
// see silence.go.
//
// github.com/sony/gobreaker and github.com/cep21/circuit were considered. They are called
// before and after every call, and all callers share a lock or counters even while the service
// is well. They probe by admitting a caller's request, which then waits for the time-out. Here
// a probe is a separate write, off the request path.
//
//	node.go    the state of one node
//	silence.go nodes that do not answer for a moment
//	recovery.go how long others may still be without a node
//	log.go     log lines and their rate limit
//	stats.go   a snapshot
package breaker

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/base"
)

// Config configures a [Set]. All fields except Back and Settling are required.
type Config[T any] struct {
	// Probe writes to the node of sample and returns nil if the write succeeded. It limits its
	// own duration.
	Probe func(ctx context.Context, sample T) error
	// Back, if not nil, is called when a node has answered its probe and receives calls again.
	// It must not block, and must not call the Set's methods.
	Back func()
	// Settling is the time that a caller needs after an outage until its own state is that of the
	// node again. See Recovering.
	Settling time.Duration
	// Min and Max bound the time between two probes. It starts at Min and doubles up to Max.
	Min, Max time.Duration
	// Begun and Over are the log messages for the beginning and the end of an outage.
	Begun, Over string
	Logger      *slog.Logger
}

// Set holds the breakers of all nodes of one service, by the nodes' names. A service with a
// single node calls it "". A Set is safe for concurrent use. While every node is available, its
// readers share no lock.
type Set[T any] struct {
	Config[T]
	open    atomic.Int64 // nodes that are unavailable
	doubted atomic.Int64 // nodes with an unanswered call and no answer since
	running atomic.Int64 // calls of Run in progress
	probes  atomic.Uint64
	opened  chan struct{} // wakes Run; capacity 1
	made    time.Time
	until   atomic.Int64 // the latest until of all nodes
	wanted  atomic.Int64 // beginning of the latest call that Wants reported, in ns since made

	mu    sync.Mutex
	nodes atomic.Pointer[map[string]*nodeBreaker[T]] // replaced by a modified copy under mu
}

const (
	// maxNodes bounds the known nodes. In a cluster these are its masters.
	maxNodes = 1024
	// maxProbes is the maximum number of concurrent probes.
	maxProbes = 16
)

// New returns a Set whose breakers are all closed. Its Run makes the probes.
func New[T any](c Config[T]) *Set[T] {
	return &Set[T]{Config: c, opened: make(chan struct{}, 1), made: time.Now()}
}

// Any reports whether any node is unavailable.
func (s *Set[T]) Any() bool { return s.open.Load() > 0 }

func (s *Set[T]) findNode(name string) *nodeBreaker[T] {
	if nodes := s.nodes.Load(); nodes != nil {
		return (*nodes)[name]
	}
	return nil
}

// Away reports whether the node is unavailable. If no Run is active, Away makes a due probe
// itself and waits for it.
func (s *Set[T]) Away(ctx context.Context, name string) bool {
	if !s.Any() {
		return false
	}
	n := s.findNode(name)
	if n == nil || !n.unavailable.Load() {
		return false
	}
	if s.running.Load() == 0 {
		s.probe(ctx, n)
	}
	return n.unavailable.Load()
}

// Failed records that a call to the node, started at began, failed. The node is unavailable
// from now on. Probes receive sample. Failed ignores a call that began before the last outage
// ended.
func (s *Set[T]) Failed(name string, began time.Time, cause error, sample T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.ensureNode(name); n != nil {
		s.fail(n, began, cause, sample)
	}
}

// fail implements Failed for a known node. The caller holds the lock.
func (s *Set[T]) fail(n *nodeBreaker[T], began time.Time, cause error, sample T) {
	if n.unavailable.Load() || began.Before(n.since) {
		return
	}
	now := time.Now()
	if n.delay = min(2*n.delay, s.Max); n.delay == 0 || now.Sub(n.since) > s.Max {
		n.delay = s.Min // the last outage was long ago
	}
	n.since, n.next = now, now.Add(jittered(n.delay))
	n.sample, n.cause = sample, cause
	s.settle(n)
	n.unavailable.Store(true)
	s.open.Add(1)
	s.sayAway(n, now)
	base.Notify(s.opened)
}

// ensureNode returns the node of that name and adds it if it is new. It returns nil if there is no
// room.
func (s *Set[T]) ensureNode(name string) *nodeBreaker[T] {
	if n := s.findNode(name); n != nil {
		return n
	}
	next := make(map[string]*nodeBreaker[T])
	if nodes := s.nodes.Load(); nodes != nil {
		for name, n := range *nodes {
			next[name] = n
		}
	}
	for name, n := range next { // an available node loses only its back-off
		if len(next) < maxNodes {
			break
		}
		if !n.unavailable.Load() {
			s.settle(n)
			delete(next, name)
		}
	}
	if len(next) >= maxNodes {
		return nil
	}
	n := &nodeBreaker[T]{name: name}
	next[name] = n
	s.nodes.Store(&next)
	return n
}

// Run makes the probes until ctx is done.
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

// due returns the nodes to probe now, at most maxProbes. If there are none, next is the time
// until the first one is due.
func (s *Set[T]) due(now time.Time) (due []*nodeBreaker[T], next time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next = s.Max
	for _, n := range *s.nodes.Load() {
		if !n.unavailable.Load() {
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

func (s *Set[T]) probeAll(ctx context.Context, due []*nodeBreaker[T]) {
	var all sync.WaitGroup
	for _, n := range due {
		all.Go(func() { s.probe(ctx, n) })
	}
	all.Wait()
}

// probe probes an unavailable node if its probe is due and no other goroutine is probing it.
func (s *Set[T]) probe(ctx context.Context, n *nodeBreaker[T]) {
	if !n.probing.CompareAndSwap(false, true) {
		return
	}
	defer n.probing.Store(false)
	s.mu.Lock()
	wait := !n.unavailable.Load() || n.due(time.Now()) > 0
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
	s.recover(n, s.spread(n, now.Sub(n.since))) // before calls go there
	n.since = now
	n.unavailable.Store(false)
	s.open.Add(-1)
	if s.Back != nil {
		s.Back()
	}
}

// UntilProbe returns the time until the next probe of an unavailable node. It returns 0 for any
// other node.
func (s *Set[T]) UntilProbe(name string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.findNode(name); n != nil && n.unavailable.Load() {
		return n.due(time.Now())
	}
	return 0
}

// jittered returns a random duration from 0.75 to 1.25 of d, so that instances do not probe at
// the same time. Its mean is d, since clients are asked to come back after [Set.UntilProbe].
// The delays of base.Backoff are shorter than d on average.
func jittered(d time.Duration) time.Duration { return d*3/4 + rand.N(d/2+1) }
