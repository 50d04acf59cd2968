package limiter

import (
	"hash/maphash"
	"math/bits"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// cachedSlot tells, by its changes, whether a denial is older than a Return that came
// while it was under way.
type cachedSlot struct {
	denial  atomic.Pointer[denial]
	changes atomic.Uint64
}

// denial is a denial that is remembered. All but next is fixed.
type denial struct {
	name, key    string
	quota        *rules.Quota
	least        int64         // how many permits have to be there at least, for it to deny
	within       time.Duration // how long the ask would have waited; below 0 if it was no Reserve
	sent, until  time.Duration // when the ask was sent, and until when it is remembered at the longest
	retry, reset time.Duration // when it said that a retry can pass, and that all is back
	decision     rules.Decision

	// next is when the next ask may go to the backend, in ns. Until retry one at a time goes, each
	// refresh, to find out whether others have returned permits. Then those go for whose permits
	// per, the time in which one comes back, has passed; with a per of 0 all go.
	next         atomic.Int64
	refresh, per time.Duration
	// asks counts the permits that asks of the key went for, also under its later denials.
	asks *atomic.Int64
}

// refreshes is how many calls in each Longest find out whether a denial still holds that is
// older than that.
const refreshes = 4

func (c *Cached) slot(op *Op) *cachedSlot {
	h := maphash.String(c.seed, op.Key) ^ bits.RotateLeft64(maphash.String(c.seed, op.Name), 32)
	return &c.slots[h&uint64(len(c.slots)-1)]
}

// least is how many permits have to be there for the ask to be allowed; -1 where that
// is not the question, or where there never are as many.
func least(op *Op) int64 {
	n, keep := op.N, max(op.Keep, 0)
	if op.Kind == AtMost {
		n = min(n, 1)
	}
	if op.Kind > Reserve || op.Quota == nil || op.Quota.CountDenied || n < 0 || keep > op.Quota.Burst-n {
		return -1
	}
	if n == 0 {
		return 0
	}
	return n + keep
}

// within returns how long an ask waits for its permits: below 0 if it is no Reserve.
func within(op *Op) time.Duration {
	if op.Kind == Reserve {
		return max(op.Within, 0)
	}
	return -1
}

// recall returns the denial of an ask that is remembered, if there is one. If not, the ask has
// to go to the backend.
func (c *Cached) recall(op *Op) (Result, bool) {
	d := c.slot(op).denial.Load()
	if !d.concerns(op) {
		return Result{}, false
	}
	if n := least(op); n < 0 || n < d.least || within(op) > d.within {
		return Result{}, false
	}
	now := c.clock()
	if now >= d.until || d.admit(op, now) {
		return Result{}, false
	}
	c.saved.Add(1)
	res, retry := Result{Decision: d.decision}, d.retry
	if now >= retry {
		retry = time.Duration(d.next.Load())
	}
	res.RetryAfter = max(retry-now, 1)
	res.ResetAfter = max(res.RetryAfter, d.reset-now)
	return res, true
}

// admit reports whether an ask goes to the backend at now.
func (d *denial) admit(op *Op, now time.Duration) bool {
	for {
		next := time.Duration(d.next.Load())
		later := d.after(next, takes(op))
		if now < d.retry {
			later = min(next+d.refresh, d.retry)
		}
		switch {
		case now < next:
			return false
		case d.next.CompareAndSwap(int64(next), int64(later)):
			return true
		}
	}
}

// after returns when so many permits have come back since an instant, or before it if permits is
// negative, within an hour.
func (d *denial) after(since time.Duration, permits int64) time.Duration {
	return since + time.Duration(max(min(float64(permits)*float64(d.per), float64(time.Hour)), -float64(time.Hour)))
}

// takes returns how many permits an ask takes if it is allowed, or 1 if it takes those that are
// there.
func takes(op *Op) int64 {
	switch op.Kind {
	case Take, Reserve, Charge:
		return max(op.N, 0)
	case AtMost:
		return 1
	}
	return 0
}

// sentAsk is what is known of a key when an ask is sent.
type sentAsk struct {
	slot    *cachedSlot
	at      time.Duration
	changes uint64
	denial  *denial // of the key, or nil
	asks    int64
}

// sending records that op goes to the backend.
func (c *Cached) sending(op *Op, now time.Duration) sentAsk {
	a := sentAsk{slot: c.slot(op), at: now}
	a.changes = a.slot.changes.Load()
	if d := a.slot.denial.Load(); d.concerns(op) {
		a.denial = d
		a.asks = d.asks.Add(takes(op))
	}
	return a
}

// concerns reports whether d is a denial of op's key.
func (d *denial) concerns(op *Op) bool {
	return d != nil && op.Quota != nil && d.key == op.Key && d.name == op.Name && *d.quota == *op.Quota
}

// learn records the outcome of an op.
func (a *sentAsk) learn(op *Op, res *Result, err error, longest time.Duration) {
	s := a.slot
	if op.Kind == Return || op.Kind == Forget {
		s.changes.Add(1)
		s.denial.Store(nil)
		return
	}
	n := least(op)
	if err == nil && res.Allowed && n >= 0 {
		a.allowed(op, n, res)
		return
	}
	locked := res.Reason == rules.ReasonLocked
	if err != nil || res.Allowed || res.RetryAfter <= 0 || n < 0 || !locked && (res.Reason != rules.ReasonLimited || op.Quota.Penalty > 0) {
		return
	}
	d := &denial{
		name: op.Name, key: strings.Clone(op.Key), quota: op.Quota, least: n, within: within(op),
		sent: a.at, until: a.at + 2*longest, retry: a.at + res.RetryAfter, reset: a.at + res.ResetAfter, decision: res.Decision,
		refresh: longest / refreshes,
	}
	if locked { // the lock may end first, and the next denial start another
		d.until = min(d.until, a.at+op.Quota.Penalty)
	}
	next := min(d.retry, a.at+longest)
	if q := op.Quota; !locked && !q.Algorithm.Windowed() && !q.Algorithm.Custom() {
		d.per = q.Rate.Per / time.Duration(q.Rate.N)
	}
	old := s.denial.Load()
	switch {
	case !old.concerns(op):
		d.asks = new(atomic.Int64)
	case old.sent > a.at && old.least == n: // it is newer
		return
	default:
		d.asks = old.asks
		if a.denial != nil && a.denial.asks == d.asks && next == d.retry { // later ones take what comes back
			next = d.after(next, d.asks.Load()-a.asks)
		}
	}
	d.next.Store(int64(next))
	s.denial.Store(d)
	if s.changes.Load() != a.changes {
		s.denial.CompareAndSwap(d, nil)
	}
}

// allowed records that an ask was allowed that was sent under a denial.
func (a *sentAsk) allowed(op *Op, n int64, res *Result) {
	d := a.denial
	if d == nil || n < d.least || a.slot.denial.Load() != d {
		return
	}
	if a.at < d.retry { // others have returned permits
		a.slot.denial.CompareAndSwap(d, nil)
		return
	}
	d.next.Add(int64(d.after(0, res.Taken-takes(op))))
	missing := d.least - res.Remaining + d.asks.Load() - a.asks // when those under way have taken theirs
	if next := int64(d.after(a.at, missing)); next < d.next.Load() {
		d.next.Store(next)
	}
}
