package breaker

import "time"

const (
	// maxLeft is how many callers in a row may leave before they have an answer: if
	// none has the patience for a time-out, they are how one shows.
	maxLeft = 10
	// maxWaiting is how many calls at a time may wait for a node that is silent.
	maxWaiting = 64
)

// TimedOut records that a call to a node, which began at began, had no answer in time. The
// first one makes the node silent. A call that began after that and has no answer either is a
// failure, unless the node answered another one meanwhile: a stall that is shorter than a
// time-out opens no breaker.
func (s *Set[T]) TimedOut(name string, began time.Time, cause error, sample T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.known(name)
	if n == nil || n.away.Load() || began.Before(n.since) {
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

// Left records that a caller left before the node had answered, and reports whether so
// many did in a row that the call counts as one without an answer in time.
func (s *Set[T]) Left(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.known(name)
	if n == nil {
		return false
	}
	n.left++
	s.doubt(n)
	return n.left >= maxLeft
}

// doubt records that a call had no answer. The caller holds the lock.
func (s *Set[T]) doubt(n *node[T]) {
	if !n.doubted.Swap(true) {
		s.doubted.Add(1)
	}
}

// settle forgets the calls that had no answer. The caller holds the lock.
func (s *Set[T]) settle(n *node[T]) {
	n.left, n.timedOut = 0, time.Time{}
	n.silent.Store(false)
	if n.doubted.Swap(false) {
		s.doubted.Add(-1)
	}
}

// Doubted reports whether some node has not answered since a call to it had no answer: then
// calls need [Set.Admit], and their answers [Set.Answered].
func (s *Set[T]) Doubted() bool { return s.doubted.Load() > 0 }

// Admit reports whether a call may go to a node. A silent node gets few at a time, so that an
// outage costs few requests a time-out before it opens the breaker. The caller calls leave when
// an admitted call has ended.
func (s *Set[T]) Admit(name string) (leave func(), ok bool) {
	n := s.find(name)
	if n == nil || !n.silent.Load() {
		return func() {}, true
	}
	if n.waiting.Add(1) > maxWaiting {
		n.waiting.Add(-1)
		return nil, false
	}
	return func() { n.waiting.Add(-1) }, true
}

// Answered records that a node answered, and reports whether it was silent.
func (s *Set[T]) Answered(name string) bool {
	n := s.find(name)
	if n == nil || !n.doubted.Load() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	was := n.silent.Load()
	s.settle(n)
	return was
}
