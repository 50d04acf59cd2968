package limiter

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// WaitLines are the waiting lines of a process, one for each key that anyone waits for.
// Reservations belong to a line, not to a caller. The place of a caller that leaves passes to
// the next one, and a reservation is returned only when no one needs it. If callers owned
// reservations, callers that give up before their turn would leave every turn unused.
//
// A line of a key in memory holds a reservation for each waiter, whose turn comes at the time
// that its own ask returned, or earlier. A line of a remote key holds as many as come due
// during a round trip, so that processes take turns and a crash loses no more. The turn is then
// an estimate.
//
// The zero value is ready to use. It is safe for concurrent use.
type WaitLines struct {
	mu    sync.Mutex // held by callers that have to wait and, for remote keys, by callers that may have to
	lines map[WaitKey]*waitLine
	count atomic.Int64 // number of lines
	short atomic.Int64 // number of lines with waiters that have no reservation
	trip  atomic.Int64 // ns, about the longest recent round trip
}

// WaitKey identifies a line.
type WaitKey struct {
	// Of is the source of the permits, such as a [Bucket]. It must be comparable, and may be
	// nil if the rest suffices.
	Of        any
	Name, Key string
	Keep      int64 // Keep of the asks

	n int64 // permits of each waiter, or 0 if these may differ
}

// Asker asks for permits of one key, and returns them.
type Asker interface {
	Do(ctx context.Context, ask Request) (Result, error)
}

// WaitClaim describes the permits that a caller waits for.
type WaitClaim struct {
	Key   WaitKey
	Asker Asker
	Quota *rules.Quota
	N     int64
	Until time.Time // the end of the wait; zero means none
	// Remote means that an ask takes a round trip.
	Remote bool
	// Patient means that the caller waits through denials that end, such as a lock.
	Patient bool
}

// joinsFirst reports whether the caller joins a line before it asks. Otherwise it asks first, and
// brings its reservation along. It asks first in memory, since asking costs nothing. It also
// does for a queue that shapes, whose places only reservations use up, and under a penalty,
// which must begin with a denial.
func (c *WaitClaim) joinsFirst() bool {
	return c.Remote && !c.Quota.Shape && c.Quota.Penalty == 0
}

// step returns the time between two permits of one reservation. It returns 0 if all are due at
// once, or if the time is not known.
func (c *WaitClaim) step() time.Duration {
	if !bucketed(c.Quota) || c.Quota.Shape {
		return 0
	}
	return pace(c.Quota)
}

// lineKey returns the key of the caller's line. Permits of a bucket may be combined as they are
// earned. Other permits may not be used later than they are due, so a caller that takes over a
// place must want as many.
func (c *WaitClaim) lineKey() WaitKey {
	key := c.Key
	if c.step() == 0 {
		key.n = c.N
	}
	return key
}

// mayJoin reports whether there may be a line that a caller joins before it asks.
func (s *WaitLines) mayJoin(remote bool) bool {
	return s.short.Load() > 0 || remote && s.count.Load() > 0
}

// Join puts the caller into the line of its key if it joins that line before it asks, or if the
// line's waiters could not reserve and the caller must not overtake them. The result is
// allowed, with the expected wait as its Delay. If the turn would come too late, it is denied,
// without a Waiter. Join returns false if the caller has to ask.
func (s *WaitLines) Join(ctx context.Context, c *WaitClaim) (w *Waiter, d rules.Decision, joined bool) {
	if !s.mayJoin(c.Remote) || c.N < 1 || c.N > c.Quota.Burst-c.Key.Keep {
		return nil, d, false
	}
	var back []heldPermits
	defer func() { _ = giveBackAll(ctx, back) }()
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines[c.lineKey()]
	if l == nil || !c.joinsFirst() && !(l.short && c.Patient) {
		return nil, d, false
	}
	turn := l.expect(c, time.Now())
	if c.isLate(turn) && !bucketed(c.Quota) {
		if turn = l.peekTurn(ctx, c, turn); l.ended {
			return nil, d, false
		}
	}
	now := time.Now()
	w, d = l.enter(c, now, turn, 0)
	back = l.settle(now)
	return w, d, true
}

// Stand puts a caller that has asked into the line of its key, with the permits that it
// reserved or, if it is patient, with a denial that ends. The result is a denial, without a
// Waiter, if the waiters in the line leave it no turn in time.
func (s *WaitLines) Stand(c *WaitClaim, res *Result) (*Waiter, rules.Decision) {
	s.mu.Lock()
	now := time.Now()
	l := s.lines[c.lineKey()]
	if l == nil {
		l = s.newLine(c.lineKey())
	}
	turn, behind := now.Add(res.Delay), int64(0)
	switch allReserved := l.reserved >= l.wanted; {
	case !res.Allowed:
		l.recordDenial(&res.Decision, now)
		turn = base.Later(l.expect(c, now), l.retry)
	case allReserved:
		behind = l.add(c, res, c.N, now)
	default:
		l.add(c, res, c.N, now)
		turn = l.expect(c, now)
	}
	w, d := l.enter(c, now, turn, behind)
	back := l.settle(now)
	s.mu.Unlock()
	_ = giveBackAll(context.Background(), back)
	if w != nil && res.Allowed {
		d = res.Decision
	}
	return w, d
}

// newLine makes the line of a key.
func (s *WaitLines) newLine(key WaitKey) *waitLine {
	l := &waitLine{all: s, key: key, kind: Reserve}
	if s.lines == nil {
		s.lines = make(map[WaitKey]*waitLine)
	}
	s.lines[key] = l
	s.count.Add(1)
	return l
}

// Waiter is a caller in a line.
type Waiter struct {
	WaitClaim
	line       *waitLine
	prev, next *Waiter
	done       chan struct{}

	// These are set before done is closed.
	got      []heldPermits // permits handed to the waiter
	denial   rules.Decision
	err      error
	panicked any
}

// Done returns a channel that is closed when the wait has ended.
func (w *Waiter) Done() <-chan struct{} { return w.done }

// Denied returns nil if the waiter was handed its permits. Otherwise it returns the denial or
// the error that ended the wait. If an algorithm panicked, Denied panics with the same value.
func (w *Waiter) Denied() (*rules.Decision, error) {
	switch {
	case w.panicked != nil:
		panic(w.panicked)
	case w.err != nil:
		return nil, w.err
	case len(w.got) == 0:
		return &w.denial, nil
	}
	return nil, nil
}

// Leave ends the wait. The waiter's place, or the permits handed to it, pass to the next one.
// The error is that of returning permits that no one needs.
func (w *Waiter) Leave(ctx context.Context) error {
	s := w.line.all
	s.mu.Lock()
	l, now := w.line, time.Now()
	var back []heldPermits
	switch {
	case !w.isOver():
		l.remove(w)
	case l.ended && s.lines[l.key] == nil:
		l, back = nil, w.got
	default:
		l = s.lines[l.key]
		for _, h := range w.got {
			h.due = now
			l.insertHeld(h)
		}
	}
	if w.got = nil; l != nil {
		back = l.settle(now)
	}
	s.mu.Unlock()
	return giveBackAll(ctx, back)
}

// wait returns when the waiter has its permits, or with the error that ended the wait. A nil
// Waiter was denied by d.
func (w *Waiter) wait(ctx context.Context, d rules.Decision) error {
	if w == nil {
		return &DeniedError{d}
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		if w.line.all.serves(w) {
			break
		}
		if err := w.Leave(ctx); err != nil {
			return errors.Join(ctx.Err(), err)
		}
		return ctx.Err()
	}
	denial, err := w.Denied()
	if denial != nil {
		denial.Rule = d.Rule
		return &DeniedError{*denial}
	}
	return err
}

func (w *Waiter) isOver() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}
