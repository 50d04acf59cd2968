package limiter

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam"
)

// window is what the algorithms with windows share: a count of the permits that were
// taken, each with the slot of time in which it counts. Where the slots lie, and when
// one leaves the window, is the frame's to tell: see fixedwindow.go, slidinglog.go and
// slidingblocks.go.
//
// What is reserved lies in a slot to come and counts at once. So all that is in the
// window, or ahead of it, is at most the limit when something is admitted, and nobody
// who comes later overtakes: one rule for what is taken now and what in advance.
// Windows that do not overlap are stricter: while something is reserved in a later one,
// nothing is taken from an earlier one.
//
// Under quotas whose windows are not alike each has a view of its own: the slots are cut
// otherwise. All that is taken counts in all views, and each quota goes by its own: so
// none forgets what another's window is too short for, and nothing is converted to and
// fro.
type window[F frame[F]] struct {
	clock
	view[F]           // of the quota that holds
	others  []view[F] // of quotas that asked within the length of their windows
}

const (
	// maxOwed is how many permits beyond the limit are counted; what is beyond that is
	// forgotten.
	maxOwed = 1 << 40
	// maxReserved is how many slots to come may hold reservations.
	maxReserved = 1 << 16
	// minSlots are not forgotten early, even if they cannot matter any more unless
	// something is given back.
	minSlots = 64
	// maxViews is how many other views are kept: those of the longest windows.
	maxViews = 7
)

// newWindow is a state on a clock that has told now already.
func newWindow[F frame[F]](q *hotparam.Quota, now time.Duration) *window[F] {
	w := &window[F]{clock: clock{instant(now)}}
	w.quota, w.frame = q, w.frame.of(q)
	return w
}

// advance makes it now, as far as the clock can be believed, and drops what has left
// the windows; read is what the clock tells. What is taken when the clock is set back
// stays so for as long as it would have.
func (w *window[F]) advance(now time.Duration) (t, read int64) {
	t, lag, leap := w.tell(now)
	w.view.advance(t, leap)
	for i := range w.others {
		w.others[i].advance(t, leap)
	}
	return t, t - lag
}

// Adapt goes on with another quota of the same algorithm: what was taken stays taken,
// for as long as the new windows are, and for as long as the old ones are where that
// quota holds again.
func (w *window[F]) Adapt(q *hotparam.Quota, now time.Duration) bool {
	t, _ := w.advance(now)
	frame := w.frame.of(q)
	if w.frame.same(frame) {
		w.quota = q
		return true
	}
	w.asked = t
	w.prune(t)
	for i := range w.others {
		if o := &w.others[i]; o.frame.same(frame) {
			w.view, *o = *o, w.view
			w.quota = q
			return true
		}
	}
	old := &w.view
	for i := range w.others {
		if o := &w.others[i]; o.span(t) > old.span(t) {
			old = o
		}
	}
	next := view[F]{quota: q, frame: frame, total: old.total, slots: old.slots.copied()}
	next.move(func(at, before int64) int64 { return frame.from(old.frame, at, before, t) })
	w.others = append(w.others, w.view)
	w.view = next
	w.view.advance(t, 0)
	return true
}

// prune drops the other views whose quota has not asked for a whole window, and where
// there are too many that of the shortest windows: it is made anew of a longer one.
func (w *window[F]) prune(t int64) {
	w.others = slices.DeleteFunc(w.others, func(o view[F]) bool { return o.frame.leaves(o.asked) <= t })
	for len(w.others) >= maxViews {
		least := 0
		for i := range w.others {
			if w.others[i].span(t) < w.others[least].span(t) {
				least = i
			}
		}
		w.others = slices.Delete(w.others, least, least+1)
	}
}

// absorb takes the other in as a view of its own.
func (w *window[F]) absorb(other State, now time.Duration) bool {
	o, ok := other.(*window[F])
	if !ok {
		return false
	}
	t, _ := w.advance(now)
	o.advance(now)
	if o.asked = t; !o.frame.same(w.frame) {
		w.prune(t)
		w.others = append(w.others, o.view)
		return true
	}
	for i := range o.slots.n {
		s := o.slots.at(i)
		w.slots.add(*s)
		w.total += s.n
	}
	return true
}

// Do does what is asked.
func (w *window[F]) Do(now time.Duration, ask Ask) Result {
	t, read := w.advance(now)
	keep := min(max(ask.Keep, 0), w.limit()+1)
	switch {
	case ask.N < 0:
		return w.result(read, t, false)
	case ask.N == 0:
		return w.result(read, t, true)
	}
	switch ask.Kind {
	case Charge:
		r := w.take(read, t, t, w.owed(ask.N))
		w.view.trim(t)
		return r
	case Return:
		w.view.giveBack(t, ask.Mark, ask.N)
		for i := range w.others {
			w.others[i].giveBack(t, ask.Mark, ask.N)
		}
		return w.result(read, t, true)
	case AtMost:
		if m := min(ask.N, w.free(t)-keep); m > 0 {
			return w.take(read, t, t, m)
		}
		return w.deny(read, t, 1, keep, ask) // a retry would do with one
	case Peek, Take, Reserve:
		switch {
		case ask.N > w.free(t)-keep:
			return w.deny(read, t, ask.N, keep, ask)
		case ask.Kind == Peek:
			return w.result(read, t, true)
		}
		return w.take(read, t, t, ask.N)
	}
	return w.result(read, t, false)
}

// FreshAfter is how long until all that was taken has left the windows.
func (w *window[F]) FreshAfter(now time.Duration) time.Duration {
	t, read := w.advance(now)
	left := w.view.left()
	for i := range w.others {
		if o := &w.others[i]; o.frame.leaves(o.asked) > t {
			left = max(left, o.left())
		}
	}
	return time.Duration(max(0, left-read))
}

// take takes n permits at t, or at a later instant, by which they are named.
func (w *window[F]) take(read, t, at, n int64) Result {
	w.count(t, at, n)
	r := w.result(read, t, true)
	r.Taken, r.Mark, r.Receipt.At = n, at, time.Duration(t)
	return r
}

// count counts n permits at the instant `at`, in all views. The others may have less room
// than that, and forget what cannot matter to them; the view that holds admitted it, so
// there only what is counted without asking is more than the limit, and is to be trimmed.
func (w *window[F]) count(t, at, n int64) {
	w.view.count(at, n)
	for i := range w.others {
		w.others[i].count(at, n)
		w.others[i].trim(t)
	}
}

// deny is what becomes of an ask for which there are not n permits now: a Reserve may
// get them later.
func (w *window[F]) deny(read, t, n, keep int64, ask Ask) Result {
	if n > w.limit()-keep {
		return w.result(read, t, false) // never
	}
	if w.quota.CountDenied && (ask.Kind == Take || ask.Kind == AtMost) {
		w.count(t, t, w.owed(ask.N))
		w.view.trim(t)
	}
	room := w.roomFor(t, n+keep)
	wait := room - read
	if ask.Kind == Reserve {
		within := int64(max(ask.Within, 0))
		first := w.slots.after(t)
		full := w.slots.n-first >= maxReserved
		if !full && wait <= within && room <= maxNow {
			r := w.take(read, t, room, n)
			r.Delay = time.Duration(wait)
			return r
		}
		wait = max(wait-within, 1)
		if full {
			wait = max(wait, w.slots.at(first).at-read)
		}
	}
	r := w.result(read, t, false)
	r.RetryAfter = time.Duration(wait)
	return r
}

// result tells how things stand at t, to one whose clock reads something else if it
// went back.
func (w *window[F]) result(read, t int64, allowed bool) Result {
	r := Result{Decision: hotparam.Decision{Allowed: allowed, Reason: hotparam.ReasonLimited, Limit: w.limit()}}
	if allowed {
		r.Reason = hotparam.ReasonWithin
	}
	r.Remaining = max(0, w.free(t))
	if w.total > 0 {
		r.ResetAfter = time.Duration(w.frame.leaves(w.slots.newest().at) - read)
	}
	return r
}
