package limiter

import "github.com/hotparam/hotparam/rules"

// windowView holds the permits taken, as counted by windows of one kind.
type windowView[F frame[F]] struct {
	quota *rules.Quota // the last quota in force
	frame F
	total int64   // permits in all slots
	slots slotLog // ordered by time
	asked int64   // last time when the quota was in force, if it no longer is
	since int64   // beginning of the count; earlier takes are not counted
}

// frame divides time, in ns, into slots.
type frame[F any] interface {
	// forQuota returns the frame of another quota.
	forQuota(q *rules.Quota) F
	// equals reports whether both cut time in the same way.
	equals(other F) bool
	// slot returns the slot in which a take at t counts. newest is the last slot in use, or t
	// if there is none.
	slot(t, newest int64) int64
	// expiryOf returns when the slot that begins at start leaves the window.
	expiryOf(start int64) int64
	// holds reports whether a take at t counts in the slot at start.
	holds(start, t int64) bool
	// latestIn returns an instant that identifies the slot at start: the latest at which its
	// permits may have been taken, as of t.
	latestIn(start, t int64) int64
	// slotIsWindow reports whether each slot is a window of its own.
	slotIsWindow() bool
	// placeAfterReset returns the new place of the slot at start when the clock is set back by
	// distance, to t. before is the new place of the slot before it, or noSlot.
	placeAfterReset(start, before, distance, t int64) int64
	// placeFrom returns the place of a slot of another frame. latest is now, or a later instant for
	// which permits were reserved, which may lie within a slot that has begun. before is as
	// above.
	placeFrom(old F, start, before, latest int64) int64
}

// noSlot is before all slots: no slot begins that early.
const noSlot = -1 << 63

// limit returns the number of permits of a window.
func (w *windowView[F]) limit() int64 { return w.quota.Rate.N }

func (w *windowView[F]) advance(t, leap int64) {
	if leap != 0 {
		w.asked, w.since = max(0, w.asked+leap), max(0, w.since+leap)
		w.move(func(start, before int64) int64 { return w.frame.placeAfterReset(start, before, -leap, t) })
	}
	for w.slots.len() > 0 && w.frame.expiryOf(w.slots.live()[0].start) <= t {
		w.total -= w.slots.pop().n
	}
}

// move moves each slot to the place that to returns. Their order stays.
func (w *windowView[F]) move(to func(start, before int64) int64) {
	old, before := w.slots, int64(noSlot)
	w.slots = slotLog{}
	for _, s := range old.live() {
		before = to(s.start, before)
		w.slots.add(slot{before, s.n})
	}
}

// under returns the view of another quota at t, with the permits that this one has counted.
// latest is t, or a later instant for which permits were reserved: see frame.
func (w *windowView[F]) under(q *rules.Quota, t, latest int64) windowView[F] {
	next := windowView[F]{quota: q, frame: w.frame.forQuota(q), total: w.total, slots: w.slots.copied(), since: t}
	if w.slots.len() > 0 {
		next.since = max(w.since, w.slots.live()[0].start)
	}
	next.move(func(start, before int64) int64 { return next.frame.placeFrom(w.frame, start, before, latest) })
	next.advance(t, 0)
	return next
}

// span returns the length of a window of the view, about t.
func (w *windowView[F]) span(t int64) int64 {
	begins := w.frame.slot(t, t)
	return w.frame.expiryOf(begins) - begins
}

// lastExpiry returns when all permits have left the window, or 0 if they have.
func (w *windowView[F]) lastExpiry() int64 {
	if w.slots.len() == 0 {
		return 0
	}
	return w.frame.expiryOf(w.slots.newest().start)
}

// free returns the number of available permits. It may be below 0.
func (w *windowView[F]) free(t int64) int64 {
	if w.frame.slotIsWindow() && w.slots.len() > 0 && w.slots.newest().start > t {
		return 0
	}
	return w.limit() - w.total
}

// roomFor returns the first instant at which n permits are available, if they are not at t and
// no more are taken. n is at most the limit.
func (w *windowView[F]) roomFor(t, n int64) int64 {
	if w.frame.slotIsWindow() {
		newest := w.slots.newest()
		if newest.start > t && newest.n <= w.limit()-n {
			return newest.start
		}
		return w.frame.expiryOf(newest.start)
	}
	// So many have to leave, or so many may stay: the smaller number is found faster.
	leave, stay := w.total-w.limit()+n, w.limit()-n
	slots, i := w.slots.live(), 0
	if leave <= stay {
		for leave -= slots[i].n; leave > 0; leave -= slots[i].n {
			i++
		}
	} else {
		i = len(slots) - 1
		for stay -= slots[i].n; stay >= 0; stay -= slots[i].n {
			i--
		}
	}
	return w.frame.expiryOf(slots[i].start)
}

// owed returns how many of n permits are counted, whether they are available or not.
func (w *windowView[F]) owed(n int64) int64 {
	return max(0, min(n, maxOwed-max(0, w.total-w.limit())))
}

func (w *windowView[F]) count(when, n int64) {
	newest := when
	if w.slots.len() > 0 {
		newest = w.slots.newest().start
	}
	w.slots.add(slot{w.frame.slot(when, newest), n})
	w.total += n
}

// trim forgets past slots that cannot matter. There are such slots only if permits beyond the
// limit are counted. The newest past slots whose permits make up the limit suffice: older ones
// leave sooner, and before the newest have left there is no room anyway.
func (w *windowView[F]) trim(t int64) {
	if w.slots.len() <= minSlots || w.total <= w.limit() {
		return
	}
	past := w.total
	for _, s := range w.slots.live()[w.slots.after(t):] {
		past -= s.n
	}
	for w.slots.len() > minSlots && past-w.slots.live()[0].n >= w.limit() {
		n := w.slots.pop().n
		past -= n
		w.total -= n
	}
}

// giveBack removes n permits, taken at an instant, from the slot that holds their mark, if they
// count and the slot has not left the window.
func (w *windowView[F]) giveBack(t, taken, mark, n int64) {
	if taken < w.since {
		return
	}
	i := w.slots.after(mark) - 1
	if i < 0 || !w.frame.holds(w.slots.live()[i].start, mark) {
		return
	}
	s := &w.slots.live()[i]
	n = min(n, s.n)
	s.n -= n
	w.total -= n
	if !w.frame.slotIsWindow() && s.n == 0 {
		w.slots.remove(i)
	}
	// A window that is open, or before a reserved one, stays as it is.
	for w.frame.slotIsWindow() && w.slots.len() > 0 && w.slots.newest().n == 0 && w.slots.newest().start > t {
		w.slots.remove(w.slots.len() - 1)
	}
}
