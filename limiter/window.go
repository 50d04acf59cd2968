package limiter

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// window is the state of the algorithms with windows: a count of the permits taken, each in the
// slot of time in which it counts. The frame defines where slots are and when one leaves the
// window: see fixedwindow.go, slidinglog.go and slidingblocks.go.
//
// A reservation is in a future slot and counts at once. So when a take is admitted, all permits
// in the window or ahead of it are at most the limit, and later asks overtake nothing: one rule
// for takes now and in advance. Windows that do not overlap are stricter: while a later one has
// a reservation, no permits are taken from an earlier one.
//
// Quotas with different windows have separate views, since they cut time differently. A take
// counts in all views, and each quota decides by its own. So no quota forgets permits that
// another's window is too short for, and permits are not converted back and forth.
type window[F frame[F]] struct {
	clock
	windowView[F]                 // view of the quota in force
	others        []windowView[F] // views of quotas that are still needed: see prune
	due           int64           // the latest instant for which permits were reserved
}

const (
	// maxOwed is the maximum number of permits counted beyond the limit; the rest is forgiven.
	maxOwed = 1 << 40
	// maxReserved is the maximum number of future slots with reservations.
	maxReserved = 1 << 16
	// minSlots is the number of slots that are kept even if they can matter only after a
	// Return.
	minSlots = 64
	// maxViews bounds the other views: those of the longest windows are kept.
	maxViews = 7
)

// newWindow returns a state whose clock has shown now.
func newWindow[F frame[F]](q *rules.Quota, now time.Duration) *window[F] {
	t := instant(now)
	w := &window[F]{clock: clock{t}}
	w.quota, w.frame, w.since = q, w.frame.forQuota(q), t
	return w
}

// advance moves the state to now, as far as the clock can be trusted, and drops the slots that
// have left the windows. read is the time that the clock shows. If the clock is set back,
// permits stay taken for as long as they would have been.
func (w *window[F]) advance(now time.Duration) (t, read int64) {
	t, lag, leap := w.observe(now)
	w.due = max(0, w.due+leap)
	w.windowView.advance(t, leap)
	for i := range w.others {
		w.others[i].advance(t, leap)
	}
	return t, t - lag
}

// Adapt switches to another quota of the same algorithm. Permits stay taken for as long as the
// new windows last, and for as long as the old ones if that quota is in force again.
func (w *window[F]) Adapt(q *rules.Quota, now time.Duration) bool {
	t, _ := w.advance(now)
	frame := w.frame.forQuota(q)
	if w.frame.equals(frame) {
		w.quota = q
		return true
	}
	w.asked = t
	w.prune(t)
	for i := range w.others {
		if o := &w.others[i]; o.frame.equals(frame) {
			w.windowView, *o = *o, w.windowView
			w.quota = q
			return true
		}
	}
	old, latest := &w.windowView, t
	if len(w.others) > 0 { // else each reservation begins a slot
		latest = max(t, w.due)
	}
	for i := range w.others {
		if o := &w.others[i]; o.span(t) > old.span(t) {
			old = o
		}
	}
	next := old.under(q, t, latest)
	w.others = append(w.others, w.windowView)
	w.windowView = next
	return true
}

// prune drops the other views that are not needed and, if there are too many, the one of the
// shortest windows, which can be rebuilt from a longer one.
func (w *window[F]) prune(t int64) {
	needed := w.needed(t)
	w.others = slices.DeleteFunc(w.others, func(o windowView[F]) bool { return !needed(&o) })
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

// needed returns a function that reports whether another view is needed. A view is needed for
// the length of the longest window after its quota last asked and after the last reservation
// was due. A view dropped after its own window would be rebuilt from a longer one each time its
// quota asks. The permits in one slot of the longer one would then count as taken just now,
// each time.
func (w *window[F]) needed(t int64) func(o *windowView[F]) bool {
	longest := w.span(t)
	for i := range w.others {
		longest = max(longest, w.others[i].span(t))
	}
	return func(o *windowView[F]) bool { return max(o.asked, w.due)+longest > t }
}

// absorb adds the permits of other, in a view of their own if its windows differ.
func (w *window[F]) absorb(other State, now time.Duration) bool {
	o, ok := other.(*window[F])
	if !ok {
		return false
	}
	t, _ := w.advance(now)
	o.advance(now)
	w.due = max(w.due, o.due)
	if o.asked = t; !o.frame.equals(w.frame) {
		w.prune(t)
		w.others = append(w.others, o.windowView)
		return true
	}
	for _, s := range o.slots.live() {
		w.slots.add(s)
		w.total += s.n
	}
	return true
}

// owes implements [debtor]. All permits count as taken at the latest instant, so they return
// when the last of them does.
func (w *window[F]) owes(now time.Duration) (owed debt, spent bool) {
	left := w.FreshAfter(now)
	if left <= 0 {
		return debt{}, false
	}
	owed[debtUntil] = instant(now) + int64(left)
	if w.due > w.last {
		owed[debtDue] = w.due
	}
	for _, o := range append(slices.Clip(w.others), w.windowView) {
		if o.slots.len() > 0 {
			owed[debtAt] = max(owed[debtAt], o.frame.latestIn(o.slots.newest().start, w.last))
			owed[debtCount] = max(owed[debtCount], o.total)
		}
	}
	return owed, w.free(w.last) < 1
}

// indebt implements [debtor], for a state that is new. Permits may matter to other quotas for
// longer than to this one, or be reserved and need not begin a slot. Then they are in a view of
// their own until all is paid, as they would be if the key had stayed.
func (w *window[F]) indebt(owed *debt, now time.Duration) {
	t, _ := w.advance(now)
	taken, until, n := owed[debtAt], owed[debtUntil], owed[debtCount]
	if n <= 0 {
		return
	}
	w.due = max(w.due, owed[debtDue])
	if w.frame.expiryOf(w.frame.slot(taken, taken)) >= until && taken <= t {
		w.windowView.count(taken, n)
		return
	}
	q := *w.quota
	q.Calendar, q.Zone, q.Penalty = "", "", 0
	q.Rate.Per = max(q.Rate.Per, time.Duration(until-taken))
	if q.Algorithm == rules.SlidingBlocks {
		q.Blocks = rules.MaxBlocks
		q.Rate.Per += q.Rate.Per / 500 // a window is shorter by up to a block
	}
	all := windowView[F]{quota: &q, frame: w.frame.forQuota(&q), asked: t, since: t}
	all.count(taken, n)
	w.windowView = all.under(w.quota, t, max(t, w.due))
	w.others = append(w.others, all)
}

// Do implements [State].
func (w *window[F]) Do(now time.Duration, ask Request) Result {
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
		r := w.takePermits(read, t, t, w.owed(ask.N))
		w.windowView.trim(t)
		return r
	case Return:
		taken := ask.Mark
		if ask.Receipt.At > 0 {
			taken = int64(ask.Receipt.At)
		}
		w.windowView.giveBack(t, taken, ask.Mark, ask.N)
		for i := range w.others {
			w.others[i].giveBack(t, taken, ask.Mark, ask.N)
		}
		return w.result(read, t, true)
	case AtMost:
		if m := min(ask.N, w.free(t)-keep); m > 0 {
			return w.takePermits(read, t, t, m)
		}
		return w.deny(read, t, 1, keep, ask) // one permit is enough for a retry
	case Peek, Take, Reserve:
		switch {
		case ask.N > w.free(t)-keep:
			return w.deny(read, t, ask.N, keep, ask)
		case ask.Kind == Peek:
			return w.result(read, t, true)
		}
		return w.takePermits(read, t, t, ask.N)
	}
	return w.result(read, t, false)
}

// FreshAfter returns the time until all takes have left the windows.
func (w *window[F]) FreshAfter(now time.Duration) time.Duration {
	t, read := w.advance(now)
	left, needed := w.windowView.lastExpiry(), w.needed(t)
	for i := range w.others {
		if o := &w.others[i]; needed(o) {
			left = max(left, o.lastExpiry())
		}
	}
	return time.Duration(max(0, left-read))
}

// takePermits takes n permits at t or at a later instant, which is also their mark.
func (w *window[F]) takePermits(read, t, when, n int64) Result {
	w.count(t, when, n)
	r := w.result(read, t, true)
	r.Taken, r.Mark, r.Receipt.At = n, when, time.Duration(t)
	return r
}

// count counts n permits at the instant when in all views. Others may have less room, and drop
// slots that cannot matter to them. The current view has admitted the permits, so in it only
// charges exceed the limit and need trimming.
func (w *window[F]) count(t, when, n int64) {
	w.windowView.count(when, n)
	for i := range w.others {
		w.others[i].count(when, n)
		w.others[i].trim(t)
	}
}

// deny returns the result of an ask for n permits that are not available now. A Reserve may get
// them later.
func (w *window[F]) deny(read, t, n, keep int64, ask Request) Result {
	if n > w.limit()-keep {
		return w.result(read, t, false) // never
	}
	if w.quota.CountDenied && (ask.Kind == Take || ask.Kind == AtMost) {
		w.count(t, t, w.owed(ask.N))
		w.windowView.trim(t)
	}
	room := w.roomFor(t, n+keep)
	wait := room - read
	if ask.Kind == Reserve {
		within := int64(max(ask.Within, 0))
		first := w.slots.after(t)
		full := w.slots.len()-first >= maxReserved
		if !full && wait <= within && room <= maxNow {
			w.due = max(w.due, room)
			r := w.takePermits(read, t, room, n)
			r.Delay = time.Duration(wait)
			return r
		}
		wait = max(wait-within, 1)
		if full {
			wait = max(wait, w.slots.live()[first].start-read)
		}
	}
	r := w.result(read, t, false)
	r.RetryAfter = time.Duration(wait)
	return r
}

// result returns the state at t. The caller's clock shows read, which differs from t if it went
// back.
func (w *window[F]) result(read, t int64, allowed bool) (r Result) {
	w.setDecision(read, t, allowed, &r.Decision)
	return r
}

// setDecision sets d, which must be zero, as result does.
func (w *window[F]) setDecision(read, t int64, allowed bool, d *rules.Decision) {
	d.Allowed, d.Reason, d.Limit = allowed, rules.ReasonLimited, w.limit()
	if allowed {
		d.Reason = rules.ReasonWithin
	}
	d.Remaining = max(0, w.free(t))
	if w.total > 0 {
		d.ResetAfter = time.Duration(w.frame.expiryOf(w.slots.newest().start) - read)
	}
}

// takeNow is like Do with Request{N: n}, without a Result. It sets d, which must be zero.
func (w *window[F]) takeNow(now time.Duration, n int64, d *rules.Decision) {
	if n <= 0 || w.quota.CountDenied {
		*d = w.Do(now, Request{N: n}).Decision
		return
	}
	t, read := w.advance(now)
	free := w.free(t)
	if n <= free {
		w.count(t, t, n)
	}
	w.setDecision(read, t, n <= free, d)
	if n > free && n <= w.limit() {
		d.RetryAfter = time.Duration(w.roomFor(t, n) - read)
	}
}
