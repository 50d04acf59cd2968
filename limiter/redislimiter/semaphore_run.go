package redislimiter

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Run takes leaseSteps steps in a lease's length. It renews a lease every renewSteps steps, or in
// each step after a failure. A lease that is not renewed counts as lost lostSteps before its end.
const (
	leaseSteps = 12
	renewSteps = 4
	lostSteps  = 2
)

// Bounds of one call for many leases.
const (
	maxLeasesPerCall = 100 // of one key, in one script
	maxCallsPerTrip  = 500 // scripts in one pipeline
)

// Run renews the leases that this process holds, every third of a lease's length and in one
// pipeline per server. It also receives hints of permits that became free. When ctx ends, it
// releases all leases, including those still held, so it must end after the work. It returns nil.
// Only one Run may be in progress at a time. Without Run, leases expire and Lost is not closed.
func (s *Semaphore) Run(ctx context.Context) error {
	var hints sync.WaitGroup
	hints.Go(func() { s.listen(ctx) })
	defer hints.Wait()
	s.runLeases(ctx)
	return nil
}

// runLeases is Run without the hints.
func (s *Semaphore) runLeases(ctx context.Context) {
	var tasks sync.WaitGroup
	tasks.Go(func() { s.gate.breakers.Run(ctx) })
	tasks.Go(func() { s.lookAfterKept(ctx) })
	step := s.step()
	tickers := [...]*time.Ticker{time.NewTicker(step), time.NewTicker(max(min(s.cfg.Retry/2, step), time.Millisecond))}
	defer func() {
		for _, t := range tickers {
			t.Stop()
		}
		tasks.Wait()
		s.releaseAll(context.WithoutCancel(ctx))
	}()
	var renewed time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tickers[0].C:
			if now := time.Now(); now.Sub(renewed) >= (renewSteps-1)*step+step/2 && s.renew(ctx) {
				renewed = now
			}
			s.loseEnding(time.Now().Add(lostSteps * step))
			s.giveBack(ctx, step, s.takeOwed())
		case <-tickers[1].C:
			if !s.gate.breakers.Any() {
				s.giveBack(ctx, step, s.takeOwed())
			}
		}
	}
}

// step returns the length of a step. It is also the time limit of a call of Run: longer than a
// request would wait, since a lease is at stake.
func (s *Semaphore) step() time.Duration { return s.cfg.Lease / leaseSteps }

// loseEnding closes Lost of the leases that end before the given time.
func (s *Semaphore) loseEnding(before time.Time) {
	var lost []*heldLease
	s.mu.Lock()
	for l := range s.held {
		if l.until.Load().Before(before) {
			lost = append(lost, l)
		}
	}
	s.mu.Unlock()
	s.closeLost(lost)
}

func (s *Semaphore) closeLost(lost []*heldLease) {
	n := 0
	s.mu.Lock()
	for _, l := range lost {
		if _, held := s.held[l]; held {
			delete(s.held, l)
			s.addOwedLocked(l) // Redis may still have it for a moment
			s.stats.Lost++
			close(l.lost)
			n++
		}
	}
	s.mu.Unlock()
	if n > 0 {
		s.cfg.Logger.Warn("semaphore: leases were lost: they could not be renewed in time, or Redis no longer has them", "leases", n)
	}
}

// leaseBatch is a group of leases of one key.
type leaseBatch struct {
	key    string
	leases []*heldLease
}

func (b leaseBatch) members() []any {
	members := make([]any, len(b.leases))
	for i, l := range b.leases {
		members[i] = l.member
	}
	return members
}

// leaseBatches groups leases by key.
func leaseBatches(leases map[*heldLease]struct{}) []leaseBatch {
	var all []leaseBatch
	open := make(map[string]int) // key → its last batch
	for l := range leases {
		i, ok := open[l.key]
		if !ok || len(all[i].leases) == maxLeasesPerCall {
			i = len(all)
			open[l.key] = i
			all = append(all, leaseBatch{key: l.key})
		}
		all[i].leases = append(all[i].leases, l)
	}
	return all
}

// renew renews all held leases and reports whether Redis answered for all of them.
func (s *Semaphore) renew(ctx context.Context) bool {
	s.mu.Lock()
	all := leaseBatches(s.held)
	s.mu.Unlock()
	ok := true
	var lost []*heldLease
	for some := range slices.Chunk(all, maxCallsPerTrip) {
		start := time.Now()
		replies, err := callAll(ctx, s, s.step(), some, func(b leaseBatch) *call {
			return &call{
				script: semaphoreRenew,
				keys:   []string{b.key},
				args:   append([]any{s.cfg.Lease.Microseconds()}, b.members()...),
			}
		})
		ok = ok && err == nil
		for i, reply := range replies {
			if len(reply) != len(some[i].leases) {
				continue // not answered
			}
			lost = append(lost, s.recordRenewal(some[i], reply, start.Add(s.cfg.Lease))...)
		}
	}
	s.closeLost(lost)
	return ok
}

// recordRenewal records the reply for one batch, and returns the leases that Redis no longer has.
func (s *Semaphore) recordRenewal(b leaseBatch, there []int64, until time.Time) (lost []*heldLease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, l := range b.leases {
		if there[i] == 1 {
			l.until.Store(&until)
		} else {
			lost = append(lost, l)
		}
	}
	return lost
}

// takeOwed removes and returns the owed leases.
func (s *Semaphore) takeOwed() map[*heldLease]struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.owed) == 0 {
		return nil
	}
	owed := s.owed
	s.owed = make(map[*heldLease]struct{})
	return owed
}

// giveBack releases leases that no one holds. Leases that Redis cannot release now are owed
// again, unless they have ended.
func (s *Semaphore) giveBack(ctx context.Context, timeout time.Duration, leases map[*heldLease]struct{}) {
	if len(leases) == 0 {
		return
	}
	all, now := leaseBatches(leases), time.Now()
	for some := range slices.Chunk(all, maxCallsPerTrip) {
		replies, _ := callAll(ctx, s, timeout, some, func(b leaseBatch) *call { return s.releaseCall(b.key, b.members()...) })
		for i, reply := range replies {
			if len(reply) == 2 {
				if !s.wakeFirst(some[i].key) && reply[1] == turnOurs {
					s.hint(ctx, some[i].key) // no one waits here any more: passes the turn on
				}
				continue
			}
			for _, l := range some[i].leases {
				if l.until.Load().After(now) {
					s.addOwed(l)
				}
			}
		}
	}
}

// releaseAll releases all leases when Run ends.
func (s *Semaphore) releaseAll(ctx context.Context) {
	s.mu.Lock()
	all := s.held
	s.held = make(map[*heldLease]struct{})
	for l := range all {
		close(l.lost)
	}
	s.mu.Unlock()
	for l := range s.takeOwed() {
		all[l] = struct{}{}
	}
	s.giveBack(ctx, max(s.cfg.Timeout, s.step()), all)
}

// callAll runs a script for each batch, in one pipeline per server. The first key of a call is that
// of the leases. The reply of a failed call is nil, and err is one of the failures.
func callAll[B any](ctx context.Context, s *Semaphore, timeout time.Duration, all []B, callFor func(B) *call) (replies [][]int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began, calls := time.Now(), make([]*call, len(all))
	for i, b := range all {
		calls[i] = callFor(b)
	}
	replies = make([][]int64, len(all))
	_ = run(ctx, s.client, calls...) // each command has its own error
	for i, c := range calls {
		var e error
		s.addHealed(c)
		replies[i], e = c.cmd.Int64Slice()
		s.recordOutcome(ctx, c.keys[0], began, e, errors.Is(e, context.Canceled))
		if e != nil {
			err = e
		}
	}
	return replies, err
}
