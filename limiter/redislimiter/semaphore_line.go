package redislimiter

import (
	"container/heap"
	"context"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// line is the queue of this process's waiters for permits of one key, as a heap with the next one
// first. The semaphore's lock guards it.
type line struct {
	waiters []*waiter
	permits int64 // number of permits of the key, as of the last ask
}

// waiter is a caller of Acquire. A caller that does not wait has no wake.
type waiter struct {
	key   string // name of the key in Redis
	n     int64
	class int
	queue int
	seq   uint64 // order of arrival
	until time.Time
	wake  chan struct{} // signals that the waiter should check its turn; of capacity 1
	place int           // index in the heap
	asked int           // number of its denials
}

func (w *waiter) before(o *waiter) bool {
	return w.class < o.class || w.class == o.class && w.seq < o.seq
}

func (l *line) Len() int           { return len(l.waiters) }
func (l *line) Less(i, j int) bool { return l.waiters[i].before(l.waiters[j]) }
func (l *line) Swap(i, j int) {
	l.waiters[i], l.waiters[j] = l.waiters[j], l.waiters[i]
	l.waiters[i].place, l.waiters[j].place = i, j
}

// Push implements [heap.Interface].
func (l *line) Push(x any) {
	w := x.(*waiter)
	w.place = len(l.waiters)
	l.waiters = append(l.waiters, w)
}

// Pop implements [heap.Interface].
func (l *line) Pop() any {
	last := len(l.waiters) - 1
	w := l.waiters[last]
	l.waiters = slices.Delete(l.waiters, last, last+1)
	return w
}

// wakeFirst wakes the first waiter.
func (l *line) wakeFirst() {
	select {
	case l.waiters[0].wake <- struct{}{}:
	default: // a wake is pending
	}
}

type entry int

const (
	entryFirst  entry = iota // no one is before it: it asks at once, and is not in the line yet
	entryWaits               // it is in the line
	entryDenied              // it would have to wait, and will not or cannot
)

// enter records the number of permits, and returns how a new waiter begins.
func (s *Semaphore) enter(w *waiter, permits int64) entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines[w.key]
	if l == nil {
		return entryFirst
	}
	if l.permits != permits {
		l.permits = permits
		l.wakeFirst()
	}
	switch {
	case w.before(l.waiters[0]):
		return entryFirst
	case w.wake == nil || l.Len() >= w.queue:
		return entryDenied
	}
	heap.Push(l, w)
	return entryWaits
}

// addWaiter puts a waiter that was denied in the line, and reports whether it did. It does not if w
// does not wait or the line is full.
func (s *Semaphore) addWaiter(w *waiter, permits int64) bool {
	if w.wake == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines[w.key]
	if l == nil {
		l = &line{permits: permits}
		s.lines[w.key] = l
	}
	if l.Len() >= w.queue {
		return false
	}
	heap.Push(l, w)
	return true
}

// removeWaiter removes a waiter and wakes the one after it, since the waiter may have left with a
// permit while another one is free.
func (s *Semaphore) removeWaiter(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, first := s.lines[w.key], w.place == 0
	heap.Remove(l, w.place)
	switch {
	case l.Len() == 0:
		delete(s.lines, w.key)
	case first:
		l.wakeFirst()
	}
}

// checkTurn reports whether w is the first, and returns the number of permits.
func (s *Semaphore) checkTurn(w *waiter) (first bool, permits int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return w.place == 0, s.lines[w.key].permits
}

// wakeFirst wakes the first waiter for a key, and reports whether there is one.
func (s *Semaphore) wakeFirst(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines[key]
	if l == nil {
		return false
	}
	l.wakeFirst()
	return true
}

// wait waits in the line until w is served, until w.until, or until the context ends. Only the
// first waiter asks: when it becomes the first, when a hint arrives, and after a pause.
func (s *Semaphore) wait(ctx context.Context, w *waiter, pause time.Duration) (*heldLease, rules.Decision, error) {
	defer s.removeWaiter(w)
	late := time.NewTimer(time.Until(w.until))
	defer late.Stop()
	again := time.NewTimer(pause)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, rules.Decision{}, ctx.Err()
		case <-late.C:
		case <-w.wake:
		case <-again.C:
		}
		first, permits := s.checkTurn(w)
		if !time.Now().Before(w.until) {
			return nil, s.denial(w, permits, 0), nil
		}
		if !first {
			continue // it is woken when it becomes the first
		}
		got, err := s.askRedis(ctx, w, permits)
		switch {
		case err != nil:
			return nil, rules.Decision{}, err
		case got.lease != nil:
			return got.lease, got.decision(), nil
		case w.n > permits:
			return nil, s.denial(w, permits, got.free()), nil
		}
		again.Reset(s.pause(w, got))
	}
}

const (
	// pauseHearing is the longest pause of the first waiter while hints arrive. It asks without a
	// hint only because a hint can be lost.
	pauseHearing = 400 * time.Millisecond
	// minPause and maxPause bound its pauses without hints, which double from one to the other.
	minPause = 5 * time.Millisecond
	maxPause = 100 * time.Millisecond
	// believed is how long Redis counts a process as waiting after it asked.
	believed = 2 * time.Second
)

// pause returns how long the first waiter waits for a hint before it asks again. That is at most
// until the next lease ends, since no hint announces that.
func (s *Semaphore) pause(w *waiter, got semaphoreAnswer) time.Duration {
	least, longest := minPause, maxPause
	if s.hearing.Load() && w.asked > 0 { // at first, a permit may have been released before w was in the line
		least, longest = pauseHearing, pauseHearing
	}
	if got.ends >= 0 {
		longest = min(longest, got.ends+minPause)
	}
	denied := w.asked
	w.asked++
	return base.Backoff(denied, least, longest)
}
