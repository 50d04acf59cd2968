package limiter

import (
	"hash/maphash"
	"math/bits"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// cachedSlot holds one denial. Its changes show whether a Return or Forget came while the ask
// of a denial was in flight, which makes the denial obsolete.
type cachedSlot struct {
	denial  atomic.Pointer[denial]
	changes atomic.Uint64
}

// denial is a denial that is remembered. All fields but next are fixed.
type denial struct {
	name, key    string
	quota        *rules.Quota
	least        int64         // permits that the denied ask needed; asks that need fewer are not denied
	within       time.Duration // delay that the ask accepted; below 0 if it was no Reserve
	sent, until  time.Duration // time when the ask was sent, and latest time at which it is remembered
	retry, reset time.Duration // times when a retry can pass and when all permits are back
	decision     rules.Decision

	// next is the time from which the next ask may go to the backend, in ns. Before retry, one
	// ask goes in each refresh, to find out whether others have returned permits. After retry,
	// next advances by per, the time in which one permit returns, for each permit of an ask
	// that goes. With a per of 0 all asks go.
	next         atomic.Int64
	refresh, per time.Duration
	// asks counts the permits of the asks that were sent for the key, also under its later
	// denials.
	asks *atomic.Int64
}

// refreshes is the number of calls in each Longest that find out whether a denial still holds, once
// that is older than Longest.
const refreshes = 4

func (c *Cached) slot(op *Op) *cachedSlot {
	h := maphash.String(c.seed, op.Key) ^ bits.RotateLeft64(maphash.String(c.seed, op.Name), 32)
	return &c.slots[h&uint64(len(c.slots)-1)]
}

// least returns the number of permits that must be available for the ask to be allowed. It
// returns -1 if the number does not decide, or is never available.
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

// within returns how long an ask waits for its permits, or a negative value if it is no
// Reserve.
func within(op *Op) time.Duration {
	if op.Kind == Reserve {
		return max(op.Within, 0)
	}
	return -1
}

// recall returns the remembered denial of an ask, if there is one. If not, the ask has to go to
// the backend.
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

// after returns the time when so many permits have returned since an instant, or a time before
// it if permits is negative. The difference is at most an hour.
func (d *denial) after(since time.Duration, permits int64) time.Duration {
	return since + time.Duration(max(min(float64(permits)*float64(d.per), float64(time.Hour)), -float64(time.Hour)))
}

// takes returns the number of permits that an ask takes if it is allowed, or 1 for an AtMost,
// which takes the available ones.
func takes(op *Op) int64 {
	switch op.Kind {
	case Take, Reserve, Charge:
		return max(op.N, 0)
	case AtMost:
		return 1
	}
	return 0
}

// sentAsk is the state of a key's slot when an ask is sent.
type sentAsk struct {
	slot       *cachedSlot
	sentAt     time.Duration
	changes    uint64
	denial     *denial // the key's denial, or nil
	asksBefore int64
}

// sending records that op goes to the backend.
func (c *Cached) sending(op *Op, now time.Duration) sentAsk {
	a := sentAsk{slot: c.slot(op), sentAt: now}
	a.changes = a.slot.changes.Load()
	if d := a.slot.denial.Load(); d.concerns(op) {
		a.denial = d
		a.asksBefore = d.asks.Add(takes(op))
	}
	return a
}

// concerns reports whether d is a denial of op's key.
func (d *denial) concerns(op *Op) bool {
	return d != nil && op.Quota != nil && d.key == op.Key && d.name == op.Name && *d.quota == *op.Quota
}

// recordResult records the outcome of an op.
func (a *sentAsk) recordResult(op *Op, res *Result, err error, longest time.Duration) {
	s := a.slot
	if op.Kind == Return || op.Kind == Forget {
		s.changes.Add(1)
		s.denial.Store(nil)
		return
	}
	n := least(op)
	if err == nil && res.Allowed && n >= 0 {
		a.recordAllowed(op, n, res)
		return
	}
	locked := res.Reason == rules.ReasonLocked
	if err != nil || res.Allowed || res.RetryAfter <= 0 || n < 0 || !locked && (res.Reason != rules.ReasonLimited || op.Quota.Penalty > 0) {
		return
	}
	d := &denial{
		name: op.Name, key: strings.Clone(op.Key), quota: op.Quota, least: n, within: within(op),
		sent: a.sentAt, until: a.sentAt + 2*longest, retry: a.sentAt + res.RetryAfter, reset: a.sentAt + res.ResetAfter, decision: res.Decision,
		refresh: longest / refreshes,
	}
	if locked { // the lock may end first, and the next denial start another
		d.until = min(d.until, a.sentAt+op.Quota.Penalty)
	}
	next := min(d.retry, a.sentAt+longest)
	if q := op.Quota; !locked && !q.Algorithm.Windowed() && !q.Algorithm.Custom() {
		d.per = q.Rate.Per / time.Duration(q.Rate.N)
	}
	old := s.denial.Load()
	switch {
	case !old.concerns(op):
		d.asks = new(atomic.Int64)
	case old.sent > a.sentAt && old.least == n: // the old denial is newer
		return
	default:
		d.asks = old.asks
		if a.denial != nil && a.denial.asks == d.asks && next == d.retry { // asks sent later take the returned permits
			next = d.after(next, d.asks.Load()-a.asksBefore)
		}
	}
	d.next.Store(int64(next))
	s.denial.Store(d)
	if s.changes.Load() != a.changes {
		s.denial.CompareAndSwap(d, nil)
	}
}

// recordAllowed records that an ask which was sent under a denial was allowed.
func (a *sentAsk) recordAllowed(op *Op, n int64, res *Result) {
	d := a.denial
	if d == nil || n < d.least || a.slot.denial.Load() != d {
		return
	}
	if a.sentAt < d.retry { // others have returned permits
		a.slot.denial.CompareAndSwap(d, nil)
		return
	}
	d.next.Add(int64(d.after(0, res.Taken-takes(op))))                // sending counted an AtMost as one permit
	missing := d.least - res.Remaining + d.asks.Load() - a.asksBefore // permits missing after the asks in flight have taken theirs
	if next := int64(d.after(a.sentAt, missing)); next < d.next.Load() {
		d.next.Store(next)
	}
}
