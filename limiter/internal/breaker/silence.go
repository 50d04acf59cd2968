package breaker

import (
	"sync/atomic"
	"time"
)

const (
	// maxLeft is the number of callers in a row who leave before an answer, for the last of them to
	// count as a time-out. If no caller waits for a whole time-out, only this reveals an outage.
	maxLeft = 10
	// maxWaiting is the maximum number of concurrent calls to a silent node.
	maxWaiting = 64
	// wantEvery is the least time between two answers that matter while no node is doubted.
	wantEvery = 250 * time.Microsecond
)

// TimedOut records that a call to the node, started at began, had no answer in time. The first
// such call makes the node silent. The next one that began after that is a failure, unless the
// node answered another call in between. So a stall shorter than a time-out opens no breaker. A
// call is lost if the node has answered one that began later. The node is not silent then.
func (s *Set[T]) TimedOut(name string, began time.Time, cause error, sample T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.ensureNode(name)
	if n == nil || n.unavailable.Load() || began.Before(n.since) || int64(began.Sub(s.made)) < n.answered.Load() {
		return
	}
	if n.timedOut.IsZero() {
		n.timedOut = time.Now()
		n.silent.Store(true)
		s.doubt(n)
	} else if !began.Before(n.timedOut) {
		s.fail(n, began, cause, sample)
	}
}

// Left records that a caller left before the node answered. It reports whether enough callers
// in a row have left for the call to count as timed out.
func (s *Set[T]) Left(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.ensureNode(name)
	if n == nil {
		return false
	}
	n.left++
	s.doubt(n)
	return n.left >= maxLeft
}

// doubt records that a call was not answered. The caller holds the lock.
func (s *Set[T]) doubt(n *nodeBreaker[T]) {
	if !n.doubted.Swap(true) {
		s.doubted.Add(1)
	}
}

// settle resets the record of unanswered calls. The caller holds the lock.
func (s *Set[T]) settle(n *nodeBreaker[T]) {
	n.left, n.timedOut = 0, time.Time{}
	n.silent.Store(false)
	if n.doubted.Swap(false) {
		s.doubted.Add(-1)
	}
}

// Doubted reports whether any node has an unanswered call and has not answered since. Calls
// then need [Set.Admit], and their answers [Set.Answered].
func (s *Set[T]) Doubted() bool { return s.doubted.Load() > 0 }

// Admit reports whether a call may go to the node. A silent node gets few calls at a time, so
// that few requests wait for a time-out before the breaker opens. The caller calls leave when
// an admitted call has ended.
func (s *Set[T]) Admit(name string) (leave func(), ok bool) {
	n := s.findNode(name)
	if n == nil || !n.silent.Load() {
		return func() {}, true
	}
	if n.waiting.Add(1) > maxWaiting {
		n.waiting.Add(-1)
		return nil, false
	}
	return func() { n.waiting.Add(-1) }, true
}

// Wants reports whether to call [Set.Answered] for the answer to a call that was started at began.
// To find the name of a node takes time and memory, so it is not done for every answer.
func (s *Set[T]) Wants(began time.Time) bool {
	if s.Doubted() {
		return true
	}
	start, last := int64(began.Sub(s.made)), s.wanted.Load()
	return start-last >= int64(wantEvery) && s.wanted.CompareAndSwap(last, start)
}

// Answered records that the node answered a call that was started at began. It reports whether
// the node was silent.
func (s *Set[T]) Answered(name string, began time.Time) bool {
	n := s.findNode(name)
	if n == nil {
		if nodes := s.nodes.Load(); nodes != nil && len(*nodes) >= maxNodes {
			return false // no node is dropped for one that answers
		}
		s.mu.Lock()
		n = s.ensureNode(name)
		s.mu.Unlock()
		if n == nil {
			return false
		}
	}
	raise(&n.answered, int64(began.Sub(s.made)))
	if !n.doubted.Load() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	was := n.silent.Load()
	if s.settle(n); was {
		s.recover(n, s.Min*5/4) // others may have opened their breakers, and first probe after Min*5/4 at the latest
	}
	return was
}

// raise sets v to at least least.
func raise(v *atomic.Int64, least int64) {
	for old := v.Load(); old < least && !v.CompareAndSwap(old, least); {
		old = v.Load()
	}
}
