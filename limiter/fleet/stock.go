package fleet

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// Stock holds the permits of one key for this instance. It is safe for concurrent use. No method
// but Borrow waits.
type Stock struct {
	fleet     *Fleet
	name, key string
	holder    string
	outage    rules.OutagePolicy
	owing     bool
	// The stock is for requests of this class of so many, the most important being 0.
	class, classes int
	part           *part // shared by the stocks of a key

	quota   atomic.Pointer[rules.Quota]
	held    atomic.Int64                   // permits that may be spent; below 0 they are owed
	version atomic.Int64                   // increases whenever held permits become void
	ends    atomic.Int64                   // clock's time at which the held permits end
	shut    atomic.Int64                   // clock's time until which the Lender has none
	missed  atomic.Int64                   // permits that were refused, in all
	outside atomic.Int64                   // permits spent without being held, in all
	waiting atomic.Int64                   // requests that wait for permits
	free    atomic.Int64                   // permits left in the bucket, as of the last answer
	full    atomic.Int64                   // clock's time at which the bucket is full, as of the last answer
	alone   atomic.Pointer[limiter.Bucket] // decides while the Lender is unavailable; nil otherwise
	active  atomic.Bool                    // whether the fleet settles the stock

	mu      sync.Mutex
	added   int64 // permits added to held, in all, less those taken out
	account account
	line    line
	keep    int64 // permits of the part that are left to other classes
}

// Quota returns the quota of the key.
func (s *Stock) Quota() *rules.Quota { return s.quota.Load() }

// Take takes n permits that the stock holds, if it has them. With an n of 0 it reports whether
// the stock holds a permit, for requests whose cost is known at their end. It does not allocate.
func (s *Stock) Take(n int64) bool {
	for {
		held := s.held.Load()
		if held < max(n, 1) || s.fleet.clock.now() >= s.ends.Load() {
			return false
		}
		if s.held.CompareAndSwap(held, held-n) {
			return true
		}
	}
}

// Charge spends n permits, held or not. The bucket is owed the missing ones.
func (s *Stock) Charge(n int64) {
	if b := s.alone.Load(); b != nil {
		b.Do(time.Duration(s.fleet.clock.now()), limiter.Request{Kind: limiter.Charge, N: n})
		s.outside.Add(n)
		return
	}
	s.held.Add(-n)
	s.fleet.wakeFor(s)
}

// Version identifies the permits that the stock holds now. It is read before a Take, for Return.
func (s *Stock) Version() int64 { return s.version.Load() }

// Return returns n permits that were taken from a version of the stock. Permits of a stock that
// has ended stay taken.
func (s *Stock) Return(n, version int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version == s.version.Load() && s.fleet.clock.now() < s.ends.Load() {
		s.held.Add(n)
		s.serve(s.fleet.clock.now())
	}
}

// SetQuota sets another quota. The held permits are void, and return to the bucket with the next
// settlement.
func (s *Stock) SetQuota(q *rules.Quota) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q == s.quota.Load() {
		return
	}
	s.quota.Store(q)
	s.dropHeld()
	s.account.number++ // the answer to an ask under way is void
	s.account.asking, s.account.next = false, 0
	s.shut.Store(0)
	s.endAlone()
	s.fleet.signal()
}

// dropHeld makes the held permits void. The caller holds mu.
func (s *Stock) dropHeld() {
	s.version.Add(1)
	s.reduceHeld(0)
}

// reduceHeld gives up the held permits above a number, and returns how many are left. The caller
// holds mu.
func (s *Stock) reduceHeld(to int64) int64 {
	for {
		held := s.held.Load()
		if held <= to || held <= 0 {
			return held
		}
		if s.held.CompareAndSwap(held, to) {
			s.added -= held - to
			return to
		}
	}
}

// spent returns the permits spent so far, given those held. The caller holds mu.
func (s *Stock) spent(held int64) int64 { return s.added - held + s.outside.Load() }

// Remaining estimates the permits left to all instances: those held here, and those free in the
// bucket at the last settlement.
func (s *Stock) Remaining() int64 { return max(0, s.held.Load()) + s.free.Load() }

// Allowed returns the decision on a request that has taken its permits.
func (s *Stock) Allowed() rules.Decision {
	d := s.decision()
	d.Allowed, d.Reason, d.Remaining = true, rules.ReasonWithin, s.Remaining()
	return d
}

// denied returns the decision on a request that is refused.
func (s *Stock) denied(retry time.Duration) rules.Decision {
	d := s.decision()
	d.RetryAfter = retry
	return d
}

func (s *Stock) decision() rules.Decision {
	return rules.Decision{
		Reason: rules.ReasonLimited, Limit: s.quota.Load().Burst,
		ResetAfter: max(0, time.Duration(s.full.Load()-s.fleet.clock.now())),
	}
}
