package fleet

import (
	"math/rand/v2"
	"time"
)

// account is the state of a stock's settlements. It is guarded by the stock's mu.
type account struct {
	incarnation int64
	number      int64 // number of the last ask
	sent        int64 // clock's time of the last ask; 0 before the first one
	next        int64 // clock's time of the next ask
	asking      bool  // whether an ask is under way
	failures    int   // number of asks that have failed since the last answer
	since       int64 // clock's time of the first ask since the last answer
	instances   int   // number of stocks with demand, as of the last answer
	base        int64 // permits spent before the Lender forgot the stock
	owed        int64 // permits that were owed as of the last ask
	seen        int64 // permits asked for, in all, as of the last ask
	demand      demand
	peak        float64 // highest demand since the stock began
}

// isAway reports whether the Lender has not answered for longer than a stock lasts.
func (a *account) isAway(now int64, lasts time.Duration) bool {
	return a.failures > 0 && now-a.since > int64(lasts)
}

// dueAt returns the clock's time at which the stock is to be settled.
func (s *Stock) dueAt() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.account.next
}

// maxBackoff is the most periods between two asks while none is answered.
const maxBackoff = 8

// overdue returns the time after which an ask counts as lost. Its answer is void once another
// one is sent.
func (a *account) overdue(every, trip time.Duration) int64 {
	return int64(max(every, 3*trip)) * int64(min(1<<max(0, min(a.failures-lastsFor, 10)), maxBackoff))
}

// prepare returns the ask of a stock that is due.
func (s *Stock) prepare() (ask Ask, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, now := &s.account, s.fleet.clock.now()
	if now < a.next {
		return ask, false
	}
	if now >= s.ends.Load() {
		s.dropHeld()
	}
	quota, trip := s.quota.Load(), time.Duration(s.fleet.trip.Load())
	every := period(quota, trip)
	need := s.need(now, every, trip)
	if !a.asking && a.failures == 0 {
		a.since = now
	}
	if a.asking {
		s.fail(now, lastsFor*every)
	}
	a.asking, a.sent = true, now
	a.next = now + a.overdue(every, trip)
	ask = s.newAsk(s.reduceHeld(need))
	ask.Want, ask.Keep = max(0, need-ask.Hold), Reserve(quota.Burst, s.class, s.classes)
	ask.Demand, ask.Period, ask.Lasts = a.demand.perSecond, every, lastsFor*every
	if a.isAway(now, ask.Lasts) {
		ask.Silent = time.Duration(now - a.since)
	}
	return ask, true
}

// lastAsk returns an ask that returns all that the stock holds.
func (s *Stock) lastAsk() Ask {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropHeld()
	ask := s.newAsk(s.held.Load())
	ask.Period, ask.Lasts = minPeriod, lastsFor*minPeriod
	return ask
}

// newAsk returns an ask that states the held permits. The caller holds mu.
func (s *Stock) newAsk(held int64) Ask {
	a := &s.account
	a.number++
	a.owed = max(0, -held)
	return Ask{
		Name: s.name, Key: s.key, Quota: s.quota.Load(), Holder: s.holder, Owing: s.owing,
		Incarnation: a.incarnation, Number: a.number, Spent: s.spent(held) - a.base, Hold: max(0, held),
	}
}

// rarely is the time between two asks of a stock with hardly any demand.
const rarely = time.Second

// isRare reports whether the stock has less than a request in two periods. Then it holds nothing, and
// is settled for each request. Permits held for a request to come would end before it. The caller
// holds mu.
func (s *Stock) isRare(every time.Duration) bool {
	return !s.owing && s.account.demand.perSecond*every.Seconds() < 0.5
}

// need updates the estimate of the demand, and returns the permits that the stock needs until the
// answer to its next ask. The caller holds mu.
func (s *Stock) need(now int64, every, trip time.Duration) int64 {
	a := &s.account
	seen := s.seen()
	guess := perSecond(s.quota.Load()) / 10
	if a.sent > 0 {
		if a.peak > 0 {
			guess = min(guess, a.peak)
		}
		a.demand.observe(seen-a.seen, now, every)
		a.peak = max(a.peak, a.demand.perSecond)
	}
	// A stock that begins has the demand of before, until more is known.
	if a.incarnation == 0 && s.waiting.Load() > 0 && a.demand.perSecond < guess {
		a.demand, a.peak = demand{perSecond: guess, since: now}, 0
	}
	a.seen = seen
	if s.isRare(every) {
		return s.waiting.Load()
	}
	return a.demand.within(every+trip) + s.waiting.Load()
}

// fail counts an ask that was not answered. The caller holds mu.
func (s *Stock) fail(now int64, lasts time.Duration) {
	s.account.failures++
	if s.account.isAway(now, lasts) {
		s.goAlone()
	}
	s.serve(now)
}

// applyAnswer applies the answer to an ask. It reports whether the Lender has forgotten the stock,
// which holds nothing and wants nothing.
func (s *Stock) applyAnswer(ask *Ask, answer *Answer) (forgotten bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, now := &s.account, s.fleet.clock.now()
	if ask.Number != a.number { // another ask was sent since then, or the quota has changed
		return false
	}
	a.asking = false
	if answer.Err != nil || answer.Stale {
		s.fail(now, ask.Lasts)
		return false
	}
	every := ask.Period
	if s.isRare(every) {
		every = rarely
	}
	a.next = max(a.sent+int64(every)-jitter(ask.Period), now)
	a.failures = 0
	s.endAlone()
	a.incarnation, a.instances = answer.Incarnation, answer.Instances
	s.free.Store(answer.Free)
	s.full.Store(now + int64(answer.ResetAfter))
	if !answer.Valid {
		s.dropHeld()
	}
	s.added += answer.Granted + a.owed
	s.held.Add(answer.Granted + a.owed)
	s.ends.Store(a.sent + int64(ask.Lasts))
	s.shut.Store(0)
	if answer.Wait > 0 {
		s.shut.Store(now + int64(answer.Wait))
		a.next = max(a.next, now+int64(answer.Wait)+jitter(ask.Period))
	}
	if s.serve(now); s.line.Len() > 0 {
		s.hurry(now)
	}
	if ask.Demand > 0 || ask.Want > 0 || ask.Hold > 0 {
		return false
	}
	a.incarnation, a.base = 0, a.base+ask.Spent
	return true
}

// jitter returns up to a quarter of a period, by chance. Without it instances ask in the same order
// again and again, and the last ones find less than their part.
func jitter(every time.Duration) int64 { return rand.Int64N(int64(every) / 4) }

// seen returns the permits asked for so far: spent, refused or waited for. The caller holds mu.
func (s *Stock) seen() int64 { return s.spent(s.held.Load()) + s.missed.Load() + s.waiting.Load() }

// isIdle reports whether nothing was asked of the stock since its last ask.
func (s *Stock) isIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting.Load() == 0 && s.seen() == s.account.seen
}
