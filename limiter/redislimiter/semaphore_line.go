package redislimiter

import (
	"context"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// line is the queue of this process's waiters for permits of one key, as a heap with the next one
// first.
type line struct {
	waiters []*waiter
	permits int64 // number of permits of the key, as of the last ask
}

// waiter is a caller of Acquire. A caller that does not wait has no wake.
type waiter struct {
	key      string // name of the key in Redis
	class    int
	maxQueue int    // number of waiters with which the line is full for it
	seq      uint64 // order of arrival
	until    time.Time
	keeps    bool          // whether it may take, and leave, a lease that this process keeps
	wake     chan struct{} // signals that the waiter should check its turn; of capacity 1
	denials  int           // number of its denials

	// The lock of the key's stripe guards these.
	state  *semaphoreState // set while it is in the line
	place  int             // index in the heap, or notInLine
	woken  bool            // whether it was woken and has not asked since
	handed *heldLease      // lease that a request of this process left to it
}

// notInLine is the place of a waiter that was served or has left.
const notInLine = -1

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
	l.waiters[0].woken = true
	l.waiters[0].signal()
}

func (w *waiter) signal() { base.Notify(w.wake) }

type entry int

const (
	entryFirst  entry = iota // no one is before it: it asks at once, and is not in the line yet
	entryWaits               // it is in the line
	entryDenied              // it would have to wait, and will not or cannot
)

// enter records the number of permits, and returns how a new waiter begins.
func (s *Semaphore) enter(w *waiter, permits int64) entry {
	st := s.stripe(w.key)
	st.mu.Lock()
	defer st.mu.Unlock()
	k := st.keys[w.key]
	if k == nil {
		return entryFirst
	}
	if k.permits != permits {
		k.permits = permits
		k.dropSpares()
		k.denied = time.Time{}
		if k.Len() > 0 {
			k.wakeFirst()
		}
	}
	first := k.Len() == 0 || w.before(k.waiters[0])
	switch {
	case first && !(w.keeps && s.keeping.Load() && k.deniedLately(w, time.Now())):
		return entryFirst
	case w.wake == nil || k.Len() >= w.maxQueue:
		return entryDenied
	}
	k.push(w)
	return entryWaits
}

// addWaiter puts a waiter that was denied in the line, and reports whether it did. It does not if w
// does not wait or the line is full. If a lease was left in the meantime, it returns that.
func (s *Semaphore) addWaiter(w *waiter, permits int64) (spare *heldLease, waits bool) {
	st := s.stripe(w.key)
	st.mu.Lock()
	defer st.mu.Unlock()
	if k := st.keys[w.key]; k != nil && w.keeps && k.permits == permits {
		if l := k.takeSpare(time.Now()); l != nil {
			return l, false
		}
	}
	if w.wake == nil {
		return nil, false
	}
	k := st.ensureState(w.key, permits)
	if k.Len() >= w.maxQueue {
		return nil, false
	}
	k.push(w)
	return nil, true
}

// removeWaiter removes w. It returns the lease left to w, if any. Otherwise, if w was the first, it
// wakes the next waiter: w may have left with a permit while another is free. While leases are
// kept, the line moves without asks. It then wakes the next only if w was woken and not served, or
// was served and more permits are free than other processes want.
func (s *Semaphore) removeWaiter(w *waiter, served bool) (handed *heldLease) {
	st := s.stripe(w.key)
	st.mu.Lock()
	defer st.mu.Unlock()
	if w.place == notInLine {
		return w.handed
	}
	k, first := w.state, w.place == 0
	k.remove(w)
	if k.Len() > 0 && first && (!w.keeps || !s.keeping.Load() || served && k.free > k.wanted || !served && w.woken) {
		k.wakeFirst()
	}
	return nil
}

// turn is what a waiter learns about its turn.
type turn int

const (
	turnLater  turn = iota // others are before it
	turnFirst              // it may ask
	turnServed             // a lease was left to it
)

// checkTurn returns a waiter's turn, and the number of permits.
func (s *Semaphore) checkTurn(w *waiter) (turn, int64) {
	st := s.stripe(w.key)
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case w.place == notInLine:
		return turnServed, 0
	case w.place > 0:
		return turnLater, w.state.permits
	}
	return turnFirst, w.state.permits
}

// othersWait reports whether the line has other waiters than w.
func (s *Semaphore) othersWait(w *waiter) bool {
	st := s.stripe(w.key)
	st.mu.Lock()
	defer st.mu.Unlock()
	k := st.keys[w.key]
	return k != nil && (k.Len() > 1 || k.Len() == 1 && k.waiters[0] != w)
}

// clearWoken records that a waiter, who was woken, was denied by Redis.
func (s *Semaphore) clearWoken(w *waiter) {
	st := s.stripe(w.key)
	st.mu.Lock()
	defer st.mu.Unlock()
	w.woken = false
}

// wakeFirst wakes the first waiter for a key, and reports whether there is one.
func (s *Semaphore) wakeFirst(key string) bool {
	st := s.stripe(key)
	st.mu.Lock()
	defer st.mu.Unlock()
	k := st.keys[key]
	if k == nil {
		return false
	}
	k.denied = time.Time{} // a permit may be free
	if k.Len() == 0 {
		return false
	}
	k.wakeFirst()
	return true
}

// wait waits in the line until w is served, until w.until, or until the context ends.
func (s *Semaphore) wait(ctx context.Context, w *waiter, pause time.Duration) (*heldLease, rules.Decision, error) {
	lease, d, err := s.waitInLine(ctx, w, pause)
	handed := s.removeWaiter(w, lease != nil)
	switch {
	case handed == nil:
		return lease, d, err
	case lease != nil || ctx.Err() != nil: // served twice, or no longer wanted
		handed.Release(handed.use)
		return lease, d, err
	}
	return handed, s.keptDecision(handed), nil
}

// waitInLine waits as wait does, but ignores a lease left to w; wait collects it. Only the first
// waiter asks: when it becomes the first, when a hint arrives, and after a pause.
func (s *Semaphore) waitInLine(ctx context.Context, w *waiter, pause time.Duration) (*heldLease, rules.Decision, error) {
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
		turn, permits := s.checkTurn(w)
		switch {
		case turn == turnServed:
			return nil, rules.Decision{}, nil
		case !time.Now().Before(w.until):
			return nil, s.denial(w, permits, 0), nil
		case turn == turnLater:
			continue // it is woken when it becomes the first
		}
		got, err := s.askRedis(ctx, w, permits)
		switch {
		case err != nil:
			return nil, rules.Decision{}, err
		case got.lease != nil:
			return got.lease, got.decision(), nil
		}
		s.clearWoken(w)
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
	// waitingTTL is how long Redis counts a process as waiting after it asked.
	waitingTTL = 2 * time.Second
)

// pause returns how long the first waiter waits for a hint before it asks again. That is at most
// until the next lease ends, since no hint announces that.
func (s *Semaphore) pause(w *waiter, got semaphoreAnswer) time.Duration {
	least, longest := minPause, maxPause
	if s.hearing.Load() && w.denials > 0 { // at first, a permit may have been released before w was in the line
		least, longest = pauseHearing, pauseHearing
	}
	if got.ends >= 0 {
		longest = min(longest, got.ends+minPause)
	}
	denied := w.denials
	w.denials++
	return base.Backoff(denied, least, longest)
}
