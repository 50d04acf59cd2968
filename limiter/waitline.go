package limiter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// waitLine is the line of one key: its waiters in order, and the permits that it holds for
// them. The lock of its WaitLines guards it. It exists while anyone waits.
//
// Callers come into a line in one of two ways, by [WaitClaim.joinsFirst]:
//
//   - A caller that asks first brings the permits that it reserved (Stand). So the line has
//     permits for each waiter. It asks only for patient ones that were denied (askForMore).
//   - A caller that joins first brings none (Join), and the line asks for it (askForMore). Such a
//     line holds only the permits that come due during a round trip (depth), and returns others
//     (surplus), so that processes take turns. Only the caller that finds no line asks first.
//
// In both ways the permits belong to the line: the first waiter gets the permits that are due first,
// whoever reserved them.
type waitLine struct {
	all  *WaitLines
	key  WaitKey
	kind OpKind // kind of its asks: Reserve, or Take if the backend cannot reserve

	first, last *Waiter
	wanted      int64 // permits, by all waiters

	held     []heldPermits // ordered by due
	reserved int64         // permits, in held
	flying   int64         // permits, in asks without an answer yet

	newest  rules.Decision // decision on the latest reservation
	decided time.Time      // time when it was made
	due     time.Time      // time when it is due
	spacing time.Duration  // recent distance of a permit from the one before

	denial rules.Decision // the latest denial
	retry  time.Time      // time from which an ask may pass after the denial; zero without one
	asked  time.Time      // time of the last ask

	short bool // whether some waiter has no permits yet; WaitLines.short counts such lines
	timer *time.Timer
	event time.Time // time of the timer: the first waiter's turn, or the next ask
	ended bool
}

// heldPermits are n permits of one result. All of them may be used when they are due, and each
// permit a step before the next one.
type heldPermits struct {
	from Asker
	res  Result
	n    int64
	due  time.Time
	step time.Duration
}

// dueFor returns when the first n of the permits may be used.
func (h *heldPermits) dueFor(n int64) time.Time { return h.due.Add(-time.Duration(h.n-n) * h.step) }

// add holds the permits that an ask reserved, and returns how many held permits are due later.
func (l *waitLine) add(c *WaitClaim, res *Result, n int64, now time.Time) (behind int64) {
	due := now.Add(res.Delay)
	if !l.due.IsZero() {
		l.spacing += (max(0, due.Sub(l.due))/time.Duration(n) - l.spacing) / 4
	}
	l.newest, l.decided, l.due, l.asked = res.Decision, now, due, now
	return l.insertHeld(heldPermits{c.Asker, *res, n, due, c.step()})
}

func (l *waitLine) insertHeld(h heldPermits) (behind int64) {
	i := len(l.held)
	for i > 0 && l.held[i-1].due.After(h.due) { // h usually comes last
		i--
		behind += l.held[i].n
	}
	l.held = slices.Insert(l.held, i, h)
	l.reserved += h.n
	return behind
}

// recordDenial records a denial that will end.
func (l *waitLine) recordDenial(d *rules.Decision, now time.Time) {
	l.denial, l.retry = *d, now.Add(max(d.RetryAfter, minNap))
}

// enter puts a caller into the line, or denies it if its turn comes too late. behind is the number
// of held permits that are due later than those that the caller brought: it stands before the
// waiters for these. If behind is 0, it is the last. Callers that asked at the same time may arrive
// here in another order than the backend served them.
func (l *waitLine) enter(c *WaitClaim, now, turn time.Time, behind int64) (*Waiter, rules.Decision) {
	d := rules.Decision{Reason: rules.ReasonLimited, Limit: c.Quota.Burst}
	d.ResetAfter = max(0, l.decided.Add(l.newest.ResetAfter).Sub(now), turn.Sub(now))
	if c.isLate(turn) {
		d.RetryAfter = turn.Sub(c.Until)
		return nil, d
	}
	d.Allowed, d.Reason, d.Delay = true, rules.ReasonWithin, max(0, turn.Sub(now))
	w := &Waiter{WaitClaim: *c, line: l, done: make(chan struct{}), prev: l.last}
	for w.prev != nil && behind >= w.prev.N {
		behind -= w.prev.N
		w.next, w.prev = w.prev, w.prev.prev
	}
	*l.after(w.prev), *l.before(w.next) = w, w
	l.wanted += w.N
	return w, d
}

// after and before return the variables that refer to the waiters after and before another one.
func (l *waitLine) after(w *Waiter) **Waiter {
	if w == nil {
		return &l.first
	}
	return &w.next
}

func (l *waitLine) before(w *Waiter) **Waiter {
	if w == nil {
		return &l.last
	}
	return &w.prev
}

// remove ends the wait of a waiter.
func (l *waitLine) remove(w *Waiter) {
	*l.after(w.prev), *l.before(w.next) = w.next, w.prev
	l.wanted -= w.N
	close(w.done)
}

// refuse ends a wait with a denial.
func (l *waitLine) refuse(w *Waiter, d *rules.Decision) {
	w.denial = *d
	w.denial.Allowed, w.denial.Delay = false, 0
	l.remove(w)
}

// serveFirst hands the first waiter its permits.
func (l *waitLine) serveFirst() {
	w := l.first
	for left := w.N; left > 0; {
		h := &l.held[0]
		n := min(left, h.n)
		w.got = append(w.got, *h)
		w.got[len(w.got)-1].n = n
		left, l.reserved = left-n, l.reserved-n
		if h.n -= n; h.n == 0 {
			*h = heldPermits{}
			l.held = l.held[1:]
		}
	}
	l.remove(w)
}

// turnOf returns when n of the held permits are due.
func (l *waitLine) turnOf(n int64) time.Time {
	i := 0
	for ; n > l.held[i].n; i++ {
		n -= l.held[i].n
	}
	return l.held[i].dueFor(n)
}

// serves reports whether the waiter's turn has come.
func (s *WaitLines) serves(w *Waiter) bool {
	s.mu.Lock()
	back := w.line.settle(time.Now())
	s.mu.Unlock()
	_ = giveBackAll(context.Background(), back)
	return w.isOver()
}

// settle does all that is due: it hands out permits, refuses waiters whose turn has become too
// late, asks for more, and sets the timer. The caller has to return the permits in back once it
// has unlocked.
func (l *waitLine) settle(now time.Time) (back []heldPermits) {
	var event time.Time
	for l.first != nil && event.IsZero() {
		w, turn := l.first, l.retry
		held := l.reserved >= w.N
		if held {
			turn = l.turnOf(w.N)
		}
		switch {
		case w.isLate(turn) && held:
			d := l.newest
			d.Reason, d.RetryAfter = rules.ReasonLimited, turn.Sub(w.Until)
			l.refuse(w, &d)
		case w.isLate(turn):
			l.refuse(w, &l.denial)
		case held && !turn.After(now):
			l.serveFirst()
		case held:
			event = turn
			if l.isFar(w, turn, now) { // askForMore then looks for an earlier turn
				event = base.Later(l.asked.Add(l.usualGap()), now)
			}
		case turn.After(now):
			event = turn
		default:
			event = now.Add(maxWait) // askForMore asks; the answer calls settle again
		}
	}
	l.askForMore(now)
	back = l.surplus()
	if short := l.reserved < l.wanted; short != l.short {
		l.short = short
		if short {
			l.all.short.Add(1)
		} else {
			l.all.short.Add(-1)
		}
	}
	l.schedule(event, now)
	return back
}

// surplus removes and returns the permits that the line must not keep, those due last first. A
// line keeps permits for its waiters only, and for callers that join first no more than depth:
// the rest is for other processes. A line has more if many callers asked before it existed.
func (l *waitLine) surplus() (back []heldPermits) {
	needed := l.wanted
	if l.first != nil && l.first.joinsFirst() {
		if depth := l.depth(); l.reserved > depth+depth/2 { // depth varies with the round trips
			needed = min(needed, depth)
		}
	}
	for more := l.reserved - needed; more > 0; more = l.reserved - needed {
		h := &l.held[len(l.held)-1]
		out := *h
		if out.n = min(more, h.n); out.n == h.n {
			*h = heldPermits{}
			l.held = l.held[:len(l.held)-1]
		} else {
			h.n, h.due = h.n-out.n, h.dueFor(h.n-out.n)
		}
		l.reserved -= out.n
		back = append(back, out)
	}
	return back
}

// schedule schedules the next settle of the line for the time of its next event, or ends the line.
func (l *waitLine) schedule(event, now time.Time) {
	switch {
	case l.ended:
	case l.first == nil:
		l.ended = true
		delete(l.all.lines, l.key)
		l.all.count.Add(-1)
		if l.timer != nil {
			l.timer.Stop()
		}
	case event.Equal(l.event):
	case l.timer == nil:
		l.timer = time.AfterFunc(event.Sub(now), l.fire)
	default:
		l.timer.Reset(event.Sub(now))
	}
	l.event = event
}

func (l *waitLine) fire() {
	l.all.mu.Lock()
	l.event = time.Time{}
	back := l.settle(time.Now())
	l.all.mu.Unlock()
	drop(back)
}

// drop returns permits on a goroutine of the line's own. No caller is there to get an error or a
// panic of an algorithm, which must not end the process. Permits that cannot be returned are lost.
func drop(back []heldPermits) {
	defer func() { _ = recover() }()
	_ = giveBackAll(context.Background(), back)
}

// giveBackAll returns the permits that a line does not need.
func giveBackAll(ctx context.Context, back []heldPermits) error {
	if len(back) == 0 {
		return nil
	}
	ctx, cancel := grace(ctx)
	defer cancel()
	var errs []error
	for i := range back {
		if err := back[i].giveBack(ctx); err != nil {
			errs = append(errs, fmt.Errorf("give back: %w", err))
		}
	}
	return errors.Join(errs...)
}

// giveBack returns the permits. The other permits of the result may be returned later.
func (h *heldPermits) giveBack(ctx context.Context) error {
	ask := h.res.Return()
	ask.Keep, ask.N = max(0, ask.N-h.n), min(ask.N, h.n)
	_, err := h.from.Do(ctx, ask)
	return err
}
