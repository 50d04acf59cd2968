package redislimiter

import (
	"context"
	"slices"
	"time"
)

// lookAfterKept looks after kept leases each period, while there are any, until ctx ends.
func (s *Semaphore) lookAfterKept(ctx context.Context) {
	s.keeping.Store(true)
	defer s.endKeeping()
	period := time.NewTicker(keptPeriod)
	defer period.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.keepsKey:
		}
		period.Reset(keptPeriod)
		for kept := true; kept; kept = s.look(ctx) {
			select {
			case <-ctx.Done():
				return
			case <-period.C:
			}
		}
		period.Stop()
	}
}

// endKeeping ends the keeping of leases, and wakes the waiters, to which none is left any more.
func (s *Semaphore) endKeeping() {
	s.keeping.Store(false)
	for i := range s.stripes {
		st := &s.stripes[i]
		st.mu.Lock()
		for _, k := range st.keys {
			k.releaseSpares(make(map[*heldLease]struct{}), func(*heldLease) bool { return true }) // Run does
			if k.Len() > 0 {
				k.wakeFirst()
			}
		}
		st.mu.Unlock()
	}
}

// keptLook is a question about the kept leases of one key.
type keptLook struct {
	leaseBatch
	state *semaphoreState
	waits string // "1" if this process has waiters
}

// look looks after kept leases, and reports whether there are any. It releases spares that no
// request took for a period. Of keys in use it asks Redis whether the leases are still there, and
// whether other processes want permits. If not, the leases are kept for longer. If so, the older
// half of those that were kept for a period is released when their requests end, and all spares
// are released at once.
//
// It is half, not all, because that suffices for equal parts: the others do the same, and Redis
// gives turns to the processes in order. It is not a fixed number, because then a process that has
// many leases would keep them.
func (s *Semaphore) look(ctx context.Context) (kept bool) {
	start := time.Now()
	var looks []keptLook
	idle := make(map[*heldLease]struct{})
	for _, k := range s.keptKeys() {
		kept = true
		looks = append(looks, s.lookAtKey(ctx, k, start, idle)...)
	}
	var lost []*heldLease
	for some := range slices.Chunk(looks, maxCallsPerTrip) {
		sent := time.Now()
		replies, _ := callAll(ctx, s, s.cfg.Timeout, some, func(b keptLook) *call {
			return &call{
				script: semaphoreLook,
				keys:   semaphoreKeys(b.key),
				args:   append([]any{s.process, b.waits, waitingTTL.Microseconds()}, b.members()...),
			}
		})
		for i, reply := range replies {
			if len(reply) != 2+len(some[i].leases) {
				some[i].extend(time.Now())
				continue
			}
			lost = append(lost, some[i].record(reply, sent, idle)...)
		}
	}
	s.closeLost(lost)
	s.giveBack(ctx, s.cfg.Timeout, s.takeHeld(idle))
	return kept
}

// keptKeys returns the keys that keep leases.
func (s *Semaphore) keptKeys() (all []*semaphoreState) {
	for i := range s.stripes {
		st := &s.stripes[i]
		st.mu.Lock()
		for _, k := range st.keys {
			if k.keeps {
				all = append(all, k)
			}
		}
		st.mu.Unlock()
	}
	return all
}

// takeHeld removes leases from the held ones, and returns those that were held.
func (s *Semaphore) takeHeld(leases map[*heldLease]struct{}) map[*heldLease]struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range leases {
		if _, held := s.held[l]; !held {
			delete(leases, l) // lost
		}
		delete(s.held, l)
	}
	return leases
}

// lookAtKey adds the key's idle spares to idle, forgets a key that no longer keeps leases, and
// returns what to ask Redis. While the key's server is unavailable, leases are kept: no one else
// can have their permits.
func (s *Semaphore) lookAtKey(ctx context.Context, k *semaphoreState, now time.Time, idle map[*heldLease]struct{}) (looks []keptLook) {
	available := s.gate.admits(ctx, k.name)
	k.stripe.mu.Lock()
	defer k.stripe.mu.Unlock()
	if !available {
		for l := range k.leases {
			l.extend(now)
		}
		return nil
	}
	k.releaseSpares(idle, func(l *heldLease) bool {
		return now.Sub(l.idle) >= keptPeriod || !isBefore(now, l.keep) || l.hasEnded(now)
	})
	busy := k.isBusy(now)
	switch {
	case !busy && len(k.leases) == 0 && k.Len() == 0:
		k.keeps = false
		k.stripe.kept--
		delete(k.stripe.keys, k.name)
		return nil
	case !busy && len(k.spares) == 0 && (k.Len() == 0 || now.Sub(k.looked) < pauseHearing):
		return nil // to look would cost more than the leases save
	}
	k.looked = now
	all := leaseBatches(k.leases)
	if len(all) == 0 {
		all = []leaseBatch{{key: k.name}}
	}
	waits := ""
	if k.Len() > 0 {
		waits = "1"
	}
	for _, b := range all {
		looks = append(looks, keptLook{leaseBatch: b, state: k, waits: waits})
	}
	return looks
}

// releaseSpares moves the spares of which drop reports true to idle.
func (k *semaphoreState) releaseSpares(idle map[*heldLease]struct{}, drop func(*heldLease) bool) {
	k.spares = slices.DeleteFunc(k.spares, func(l *heldLease) bool {
		if !drop(l) {
			return false
		}
		idle[l] = struct{}{}
		delete(k.leases, l)
		k.stripe.spares--
		return true
	})
}

// extend keeps a lease for longer, unless it was dropped.
func (l *heldLease) extend(now time.Time) {
	if !l.keep.IsZero() {
		l.keep = now.Add(keptFor)
	}
}

// extend keeps the leases for longer, since Redis does not answer.
func (b *keptLook) extend(now time.Time) {
	b.state.stripe.mu.Lock()
	defer b.state.stripe.mu.Unlock()
	for _, l := range b.leases {
		l.extend(now)
	}
}

// record records an answer, adds the spares that others want to idle, and returns the leases that
// Redis no longer has.
func (b *keptLook) record(reply []int64, sent time.Time, idle map[*heldLease]struct{}) (lost []*heldLease) {
	k := b.state
	k.stripe.mu.Lock()
	defer k.stripe.mu.Unlock()
	wasFree := k.free > 0
	k.wanted, k.free = reply[0], max(k.permits-reply[1], 0)
	there := b.leases[:0:0]
	for i, l := range b.leases {
		if reply[2+i] == 1 {
			there = append(there, l)
		} else {
			l.keep = time.Time{}
			lost = append(lost, l)
		}
	}
	if k.wanted > 0 {
		slices.SortFunc(there, func(a, b *heldLease) int { return a.granted.Compare(b.granted) })
		for _, l := range there[:(len(there)+1)/2] {
			if sent.Sub(l.granted) >= keptPeriod {
				l.keep = time.Time{}
			}
		}
		k.releaseSpares(idle, func(*heldLease) bool { return true })
	} else {
		for _, l := range there {
			l.extend(sent)
		}
	}
	if k.Len() > 0 && (k.free > k.wanted || k.free > 0 && wasFree) { // the others' permits are left for a period
		k.wakeFirst()
	}
	if k.free > 0 {
		k.denied = time.Time{}
	}
	return lost
}
