package limiter

import (
	"context"
	"errors"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// maxFlying bounds the permits that a line of a remote key holds or is asking for.
const maxFlying = 256

// askTime bounds the ask of a line. Backends have shorter deadlines of their own.
const askTime = time.Second

// isLate reports whether a turn comes after the end of the wait. The millisecond covers
// the time between two readings of the clock.
func (c *WaitClaim) isLate(turn time.Time) bool {
	return !c.Until.IsZero() && turn.Sub(c.Until) >= minNap
}

// pace returns the time in which a quota earns a permit.
func pace(q *rules.Quota) time.Duration {
	if q.Rate.N < 1 {
		return 0
	}
	return time.Duration(q.Rate.Interval())
}

// expect returns the latest time of the caller's turn, after all waiters that have no
// reservation yet. The turn comes later only if other processes take more turns than lately.
func (l *waitLine) expect(c *WaitClaim, now time.Time) time.Time {
	turn, ahead := now, l.wanted+c.N-l.reserved
	if len(l.held) > 0 {
		turn = base.Later(turn, l.held[len(l.held)-1].due)
	} else if l.retry.After(turn) {
		turn, ahead = l.retry, ahead-1
	}
	step, batch := max(pace(c.Quota), l.spacing), int64(1)
	if !bucketed(c.Quota) { // permits may come a window's worth at a time
		step, batch = c.Quota.Rate.Per, max(1, c.Quota.Rate.N)
	}
	steps := (max(0, ahead) + batch - 1) / batch
	return turn.Add(time.Duration(min(float64(steps)*float64(step), float64(maxWait))))
}

// peekTurn returns the time of the caller's turn as far as the backend knows, or estimate. It
// unlocks during the call, so the line may have ended.
func (l *waitLine) peekTurn(ctx context.Context, c *WaitClaim, estimate time.Time) time.Time {
	size := max(1, c.Quota.Burst-c.Key.Keep)
	ahead := max(0, l.wanted+c.N-l.reserved-1)
	l.all.mu.Unlock()
	defer l.all.mu.Lock()
	res, err := c.Asker.Do(ctx, Request{Kind: Peek, N: ahead%size + 1, Keep: c.Key.Keep})
	if err != nil || res.RetryAfter <= 0 && !res.Allowed {
		return estimate
	}
	rounds := time.Duration(min(float64(ahead/size)*float64(pace(c.Quota))*float64(size), float64(maxWait)))
	return time.Now().Add(res.RetryAfter + rounds)
}

// depth returns how many permits the line holds ahead: as many as come due during a round trip,
// and at least as many as the first waiter wants.
func (l *waitLine) depth() int64 {
	n := int64(maxFlying)
	if step := int64(pace(l.first.Quota)); step > 0 {
		n = min((l.all.trip.Load()-1)/step+1, n)
	}
	return max(n, l.first.N)
}

// isFar reports whether a turn is so far ahead that other processes may have returned earlier
// reservations since. The line then asks again after each usualGap, and keeps the earlier turn.
func (l *waitLine) isFar(w *Waiter, turn, now time.Time) bool {
	return w.joinsFirst() && turn.Sub(now) > l.usualGap()
}

// usualGap returns the longest usual time from one turn of a line to its next.
func (l *waitLine) usualGap() time.Duration {
	q := l.first.Quota
	span := 4 * pace(q)
	if !bucketed(q) {
		span = q.Rate.Per
	}
	return max(span, 2*l.spacing, 100*time.Millisecond)
}

// askForMore asks for permits for the waiters that have no reservation yet.
func (l *waitLine) askForMore(now time.Time) {
	w := l.first
	if w == nil || l.retry.After(now) {
		return
	}
	if l.flying == 0 && l.reserved >= w.N && now.Sub(l.asked) >= l.usualGap() && l.isFar(w, l.turnOf(w.N), now) {
		l.askFor(w, w.N, now)
	}
	target := min(l.wanted, l.depth())
	for sum := int64(0); w != nil && l.reserved+l.flying < target; w = w.next {
		if sum += w.N; sum > l.reserved+l.flying {
			l.askFor(w, sum-l.reserved-l.flying, now)
		}
	}
}

func (l *waitLine) askFor(w *Waiter, n int64, now time.Time) {
	l.flying, l.asked = l.flying+n, now
	go l.requestPermits(w, n)
}

// requestPermits asks for n permits with which the line can serve w and the waiters before it.
func (l *waitLine) requestPermits(w *Waiter, n int64) {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	began := time.Now()
	res, err, panicked := l.reserve(ctx, w, n)
	now := time.Now()
	l.all.measure(now.Sub(began))
	l.all.mu.Lock()
	l.flying -= n
	switch {
	case err != nil || panicked != nil:
		l.endRest(func(w *Waiter) { w.err, w.panicked = err, panicked })
	case res.Allowed:
		l.retry = time.Time{}
		l.add(&w.WaitClaim, &res, n, now)
	case res.RetryAfter > 0 && w.Patient:
		l.recordDenial(&res.Decision, now)
	case res.RetryAfter > 0:
		l.endRest(func(w *Waiter) { w.denial = res.Decision })
	case !w.isOver(): // it can never pass, as the quota has changed
		l.refuse(w, &res.Decision)
	}
	back := l.settle(now)
	l.all.mu.Unlock()
	drop(back)
}

// reserve asks for n permits of a waiter's key, and falls back to Take if the backend cannot
// reserve.
func (l *waitLine) reserve(ctx context.Context, w *Waiter, n int64) (res Result, err error, panicked any) {
	defer func() { panicked = recover() }()
	l.all.mu.Lock()
	kind := l.kind
	l.all.mu.Unlock()
	ask := Request{Kind: kind, N: n, Keep: w.Key.Keep}
	if kind == Reserve {
		ask.Within = maxWait
	}
	res, err = w.Asker.Do(ctx, ask)
	if kind == Reserve && errors.Is(err, ErrUnsupported) {
		ask.Kind, ask.Within = Take, 0
		if res, err = w.Asker.Do(ctx, ask); err == nil {
			l.all.mu.Lock()
			l.kind = Take
			l.all.mu.Unlock()
		}
	}
	return res, err, nil
}

// endRest ends the waits that have no reservation.
func (l *waitLine) endRest(set func(w *Waiter)) {
	covered := l.reserved
	for w := l.first; w != nil; {
		next := w.next
		if covered -= w.N; covered < 0 {
			set(w)
			l.remove(w)
		}
		w = next
	}
}

// measure records the duration of a round trip.
func (s *WaitLines) measure(took time.Duration) {
	for {
		old := s.trip.Load()
		next := max(int64(took), old-(old-int64(took))/8)
		if next == old || s.trip.CompareAndSwap(old, next) {
			return
		}
	}
}
