// Package permitline is the line of callers that wait for permits of an object with a rate, for the
// objects of packages permits and redislimiter.
package permitline

import (
	"container/list"
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/hotparam/hotparam/internal/base"
)

// ErrNone means that a caller wants no permit.
var ErrNone = errors.New("permits: less than one permit")

// Line is the queue of this process's callers that wait for the permits of an object. Only the first
// waiter of a client asks, when its permits are due. It starts no goroutine. The fields are set before
// the first use.
type Line struct {
	// Take takes n permits for a client if they are available and before is empty: the permits that
	// the waiters before the caller want, in their order. Otherwise, if the caller waits, it returns
	// the time until its turn.
	Take func(ctx context.Context, client string, n int64, waits bool, before []int64) (took bool, wait time.Duration, err error)
	// Recheck is the longest time between two asks of a first waiter, if others than this process
	// may return permits. Zero means no bound.
	Recheck time.Duration

	mu        sync.Mutex
	waiters   list.List // the *lineWaiters in the order in which they came
	perClient bool      // whether waiters of other clients are not in a client's way
	changes   uint64    // number of calls of Wake and of waiters that left
}

type lineWaiter struct {
	client string
	n      int64
	wake   chan struct{} // signals that the waiter should look for its turn; of capacity 1
}

const (
	// maxBefore bounds the number of waiters that are passed to Take.
	maxBefore = 1000
	// lateness is how long a waiter whose time is over waits for those before it. Their permits may
	// be due at the same time.
	lateness = 50 * time.Millisecond
)

// Acquire takes n permits, and waits for them if that takes no longer than timeout.
func (l *Line) Acquire(ctx context.Context, client string, n int64, timeout time.Duration) (bool, error) {
	if n < 1 {
		return false, ErrNone
	}
	start := time.Now()
	before, changes := l.before(client)
	took, wait, err := l.Take(ctx, client, n, timeout > 0, before)
	if took || err != nil || timeout <= 0 || wait > timeout-time.Since(start) {
		return took, err
	}
	w := &lineWaiter{client: client, n: n, wake: make(chan struct{}, 1)}
	place := l.join(w, changes)
	defer l.leave(place)
	again := time.NewTimer(l.pause(wait))
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-w.wake:
		case <-again.C:
		}
		// Permits that were promised are taken even if they come a little late.
		left := timeout - time.Since(start)
		switch {
		case l.isFirst(place):
			took, wait, err = l.Take(ctx, client, n, true, nil)
			if took || err != nil || wait > left {
				return took, err
			}
			again.Reset(l.pause(wait))
		case left <= -lateness:
			return false, nil
		case timeout == math.MaxInt64: // a waiter that becomes the first is woken
			again.Stop()
		default:
			again.Reset(left + lateness)
		}
	}
}

func (l *Line) pause(wait time.Duration) time.Duration {
	if l.Recheck > 0 {
		return min(wait, l.Recheck)
	}
	return wait
}

// Wake makes the first waiters ask again. It is called when permits were returned or the rate has
// changed. perClient reports whether each client has its own permits.
func (l *Line) Wake(perClient bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.perClient = perClient
	l.wakeFirsts()
}

func (l *Line) wakeFirsts() {
	l.changes++
	woken := map[string]bool{}
	for e := l.waiters.Front(); e != nil; e = e.Next() {
		if w := e.Value.(*lineWaiter); !woken[w.client] {
			woken[w.client] = true
			base.Notify(w.wake)
		}
		if !l.perClient {
			break
		}
	}
}

// Waiting returns the number of waiters.
func (l *Line) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiters.Len()
}

// inTheWay reports whether a waiter goes before one of a client that came later.
func (l *Line) inTheWay(w *lineWaiter, client string) bool {
	return !l.perClient || w.client == client
}

// before returns the permits that the waiters before a caller want, and the number of changes.
func (l *Line) before(client string) (wanted []int64, changes uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := l.waiters.Front(); e != nil && len(wanted) < maxBefore; e = e.Next() {
		if w := e.Value.(*lineWaiter); l.inTheWay(w, client) {
			wanted = append(wanted, w.n)
		}
	}
	return wanted, l.changes
}

// join puts a waiter into the line. It looks again at once if there were changes since it asked.
func (l *Line) join(w *lineWaiter, changes uint64) *list.Element {
	l.mu.Lock()
	defer l.mu.Unlock()
	if changes != l.changes {
		base.Notify(w.wake)
	}
	return l.waiters.PushBack(w)
}

func (l *Line) isFirst(place *list.Element) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := l.waiters.Front(); e != place; e = e.Next() {
		if l.inTheWay(e.Value.(*lineWaiter), place.Value.(*lineWaiter).client) {
			return false
		}
	}
	return true
}

// leave removes a waiter. The next waiter may then be the first.
func (l *Line) leave(place *list.Element) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiters.Remove(place)
	l.wakeFirsts()
}
