package redislimiter

import (
	"hash/maphash"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/rules"
)

const (
	// keptPeriod is the interval at which kept leases are looked after: see look. A spare that
	// no request took in this time is released.
	keptPeriod = 50 * time.Millisecond
	// keptFor is how long leases are kept after Redis was asked, unless it is asked again: some
	// periods, since a look may be late.
	keptFor = 3 * keptPeriod
	// keptDenied is how long a process that was denied counts as wanting permits, for Redis. Each
	// process that keeps leases looks at it in this time.
	keptDenied = 2 * keptPeriod
	// rememberedDenial is how long this process denies by the last denial, without a wait. With a
	// wait it is a period: Redis knows that the process waits, and sends a hint.
	rememberedDenial = keptPeriod / 4
	// eagerGap is the time between asks up to which a spare is likely to be taken at once.
	eagerGap = keptPeriod / 10

	// Bounds in each stripe. Beyond them leases are not kept.
	maxKeptKeys = 1024
	maxSpares   = 1024
)

// keptLeases has the leases of a key that this process keeps: those that requests hold, and spares.
type keptLeases struct {
	keeps  bool                    // whether leases are kept, or were lately
	leases map[*heldLease]struct{} // all of them
	spares []*heldLease            // latest last, so that those too many stay idle
	last   time.Time               // time of the last grant
	often  bool                    // whether the last two grants were less than a period apart
	asked  time.Time               // time of the last ask
	gap    time.Duration           // moving average of the time between asks
	wanted int64                   // other processes that want permits, as of the last answer
	free   int64                   // free permits in Redis, as of the last answer
	denied time.Time               // time of the last denial; zero if a permit may be free since
	looked time.Time               // time of the last look
}

// deniedLately reports whether w need not ask, since another request of this process was denied.
func (k *keptLeases) deniedLately(w *waiter, now time.Time) bool {
	if w.wake == nil {
		return now.Sub(k.denied) < rememberedDenial
	}
	return now.Sub(k.denied) < keptPeriod
}

func (k *keptLeases) recordGrant(now time.Time) {
	k.often, k.last = now.Sub(k.last) < keptPeriod, now
}

func (k *keptLeases) recordAsk(now time.Time) {
	k.gap += (min(now.Sub(k.asked), keptFor) - k.gap) / 4
	k.asked = now
}

// mayHaveSpare reports whether one more lease may become a spare. While others want permits, a spare
// must be likely to be taken at once, and be one of few.
func (k *keptLeases) mayHaveSpare(now time.Time) bool {
	if k.wanted == 0 {
		return k.isBusy(now)
	}
	return k.gap < eagerGap && len(k.spares) < max(1, len(k.leases)/4)
}

// isBusy reports whether grants are frequent enough that keeping leases saves calls.
func (k *keptLeases) isBusy(now time.Time) bool { return k.often && now.Sub(k.last) < 2*keptPeriod }

// takeSpare returns the latest spare, for a new request, or nil.
func (k *semaphoreState) takeSpare(now time.Time) *heldLease {
	for len(k.spares) > 0 && k.Len() == 0 {
		last := len(k.spares) - 1
		l := k.spares[last]
		if !isBefore(now, l.keep) && !l.hasEnded(now) {
			return nil // the next look decides
		}
		k.spares[last], k.spares = nil, k.spares[:last]
		k.stripe.spares--
		if l.hasEnded(now) {
			delete(k.leases, l)
			continue
		}
		k.stripe.grantKept(k, l, now)
		return l
	}
	return nil
}

// grantKept grants a lease to another request.
func (st *semaphoreStripe) grantKept(k *semaphoreState, l *heldLease, now time.Time) {
	l.use++
	l.used, l.since = true, now
	st.reused++
	k.recordGrant(now)
}

// dropSpares makes the next look release all spares.
func (k *semaphoreState) dropSpares() {
	for _, l := range k.spares {
		l.keep = time.Time{}
	}
}

// acquireKept takes a spare, and reports whether there was one.
func (s *Semaphore) acquireKept(key string, permits int64) (lease semaphore.Lease, d rules.Decision, taken bool) {
	if !s.keeping.Load() {
		return lease, d, false
	}
	var room [160]byte
	name := appendSemaphoreKey(room[:0], s.cfg.Namespace, key)
	st := &s.stripes[maphash.Bytes(semaphoreSeed, name)%semaphoreStripes]
	st.mu.Lock()
	k := st.keys[string(name)]
	if k != nil && k.keeps {
		now := time.Now()
		k.recordAsk(now)
		if k.permits == permits {
			if l := k.takeSpare(now); l != nil {
				lease, d, taken = semaphore.NewLease(l, l.use), k.keptDecision(), true
			}
		}
	}
	st.mu.Unlock()
	return lease, d, taken
}

func (k *semaphoreState) keptDecision() rules.Decision {
	return rules.Decision{Allowed: true, Reason: rules.ReasonWithin, Limit: k.permits, Remaining: k.free + int64(len(k.spares))}
}

// keptDecision is the decision about a request that holds l.
func (s *Semaphore) keptDecision(l *heldLease) rules.Decision {
	st := l.state.stripe
	st.mu.Lock()
	defer st.mu.Unlock()
	return l.state.keptDecision()
}

// keep records the answer to an ask of a waiter that keeps leases.
func (s *Semaphore) keep(w *waiter, got *semaphoreAnswer, now time.Time) {
	st := s.stripe(w.key)
	st.mu.Lock()
	defer st.mu.Unlock()
	if !s.keeping.Load() {
		return
	}
	k := st.keys[w.key]
	if k == nil || !k.keeps {
		if st.kept >= maxKeptKeys {
			return
		}
		k = st.ensureState(w.key, got.permits)
		k.keeps, k.asked, k.gap = true, now, keptPeriod
		st.kept++
		base.Notify(s.keepsKey)
	}
	// A process that was sent a hint no longer waits for Redis, but may not have asked yet. So only a
	// look lowers the number.
	k.wanted, k.free = max(k.wanted, got.wanted), got.free()
	if got.lease == nil {
		k.denied = now
		return
	}
	if k.leases == nil {
		k.leases = make(map[*heldLease]struct{})
	}
	l := got.lease
	k.leases[l] = struct{}{}
	l.state, l.permits, l.used, l.keep = k, got.permits, true, now.Add(keptFor)
	k.recordGrant(now)
}

// passOn leaves a lease to the next request of this process, and reports whether the lease need not
// be released: it was passed on, is a spare now, or this use of it had ended before.
func (s *Semaphore) passOn(l *heldLease, use uint64) bool {
	k := l.state
	st := k.stripe
	st.mu.Lock()
	defer st.mu.Unlock()
	if l.use != use || !l.used {
		return true
	}
	l.used = false
	now := time.Now()
	switch {
	case !s.keeping.Load() || l.permits != k.permits || !isBefore(now, l.keep) || l.hasEnded(now):
	case k.Len() > 0:
		if w := k.waiters[0]; w.keeps {
			k.remove(w)
			w.handed = l
			st.grantKept(k, l, now)
			w.signal()
			return true
		}
	case k.mayHaveSpare(now) && st.spares < maxSpares:
		l.idle = now
		k.spares = append(k.spares, l)
		st.spares++
		return true
	}
	delete(k.leases, l)
	k.denied = time.Time{}
	return false
}

// isBefore reports whether now is before end, also by the system's clock: the monotonic one stands
// still while the machine is suspended.
func isBefore(now, end time.Time) bool {
	return now.Before(end) && now.UnixNano() < end.UnixNano()
}
