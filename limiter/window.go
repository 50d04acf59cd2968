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

// view is what windows of one kind know of what was taken.
type view[F frame[F]] struct {
	quota *hotparam.Quota // the last one
	frame F
	total int64   // permits in all slots
	slots slotLog // in order of time
	asked int64   // when the quota held last; of one that does not hold
}

// frame divides time, in ns, into slots.
type frame[F any] interface {
	// of is the frame of another quota.
	of(q *hotparam.Quota) F
	// same tells whether two cut time alike.
	same(as F) bool
	// slot is where that counts which is taken at t. newest is the last slot that is
	// in use; where none is, it is t.
	slot(t, newest int64) int64
	// leaves is when the slot that begins at `at` leaves the window.
	leaves(at int64) int64
	// holds tells whether the slot at `at` is where that counts which was taken at t.
	holds(at, t int64) bool
	// apart tells whether each slot is a window of its own.
	apart() bool
	// back is where the slot at `at` goes when the clock is set back, by so much, to t.
	// before is where the slot before it went, or noSlot.
	back(at, before, by, t int64) int64
	// from is where a slot of another frame goes, at t; before as above.
	from(old F, at, before, t int64) int64
}

// noSlot is before all slots: no slot begins that early.
const noSlot = -1 << 63

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

// limit is how many permits a window has.
func (w *view[F]) limit() int64 { return w.quota.Rate.N }

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

func (w *view[F]) advance(t, leap int64) {
	if leap != 0 {
		w.asked = max(0, w.asked+leap)
		w.move(func(at, before int64) int64 { return w.frame.back(at, before, -leap, t) })
	}
	for w.slots.n > 0 && w.frame.leaves(w.slots.at(0).at) <= t {
		w.total -= w.slots.pop().n
	}
}

// move moves each slot to where it belongs; their order stays.
func (w *view[F]) move(to func(at, before int64) int64) {
	old, before := w.slots, int64(noSlot)
	w.slots = slotLog{}
	for i := range old.n {
		before = to(old.at(i).at, before)
		w.slots.add(slot{before, old.at(i).n})
	}
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

// span is how long a window of the view is, about t.
func (w *view[F]) span(t int64) int64 { return w.frame.leaves(t) - t }

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

// left is when all that was taken has left the window; 0: it has.
func (w *view[F]) left() int64 {
	if w.slots.n == 0 {
		return 0
	}
	return w.frame.leaves(w.slots.newest().at)
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

// free is how many permits there are; it may be below 0.
func (w *view[F]) free(t int64) int64 {
	if w.frame.apart() && w.slots.n > 0 && w.slots.newest().at > t {
		return 0
	}
	return w.limit() - w.total
}

// roomFor is the first instant at which there are n permits, if there are not at t and
// nobody takes more. n is at most the limit.
func (w *view[F]) roomFor(t, n int64) int64 {
	if w.frame.apart() {
		newest := w.slots.newest()
		if newest.at > t && newest.n <= w.limit()-n {
			return newest.at
		}
		return w.frame.leaves(newest.at)
	}
	// So many have to leave, or so many may stay: what is less is quicker to find.
	leave, stay := w.total-w.limit()+n, w.limit()-n
	if leave <= stay {
		for i := 0; ; i++ {
			s := w.slots.at(i)
			if leave -= s.n; leave <= 0 {
				return w.frame.leaves(s.at)
			}
		}
	}
	for i := w.slots.n - 1; ; i-- {
		s := w.slots.at(i)
		if stay -= s.n; stay < 0 {
			return w.frame.leaves(s.at)
		}
	}
}

// owed is how many of n permits are counted, whether they are there or not.
func (w *view[F]) owed(n int64) int64 {
	return max(0, min(n, maxOwed-max(0, w.total-w.limit())))
}

func (w *view[F]) count(at, n int64) {
	newest := at
	if w.slots.n > 0 {
		newest = w.slots.newest().at
	}
	w.slots.add(slot{w.frame.slot(at, newest), n})
	w.total += n
}

// trim forgets slots that are past and cannot matter, which there are only when permits
// beyond the limit are counted: those suffice whose permits make up the limit, as older
// ones leave sooner, and until these have left there is no room anyway.
func (w *view[F]) trim(t int64) {
	if w.slots.n <= minSlots || w.total <= w.limit() {
		return
	}
	past := w.total
	for i := w.slots.n - 1; i >= 0 && w.slots.at(i).at > t; i-- {
		past -= w.slots.at(i).n
	}
	for w.slots.n > minSlots && past-w.slots.at(0).n >= w.limit() {
		n := w.slots.pop().n
		past -= n
		w.total -= n
	}
}

// giveBack takes n permits out of the slot that holds the mark, if it has not left the
// window.
func (w *view[F]) giveBack(t, mark, n int64) {
	i := w.slots.after(mark) - 1
	if i < 0 || !w.frame.holds(w.slots.at(i).at, mark) {
		return
	}
	s := w.slots.at(i)
	n = min(n, s.n)
	s.n -= n
	w.total -= n
	if !w.frame.apart() && s.n == 0 {
		w.slots.remove(i)
	}
	// A window that is open, or before one that is reserved, stays as it is.
	for w.frame.apart() && w.slots.n > 0 && w.slots.newest().n == 0 && w.slots.newest().at > t {
		w.slots.remove(w.slots.n - 1)
	}
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
