package redislimiter

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/hotparam/hotparam/rules"
)

var (
	//go:embed lua/semaphore_acquire.lua
	semaphoreAcquireLua string
	//go:embed lua/semaphore_release.lua
	semaphoreReleaseLua string
	//go:embed lua/semaphore_renew.lua
	semaphoreRenewLua string
	//go:embed lua/semaphore_head.lua
	semaphoreHeadLua string
	//go:embed lua/semaphore_look.lua
	semaphoreLookLua string

	semaphoreAcquire = newScript(semaphoreHeadLua, semaphoreAcquireLua).withReads("ZCARD", "ZCARD", "ZCARD")
	semaphoreLook    = newScript(semaphoreHeadLua, semaphoreLookLua).withReads("ZCARD", "ZCARD", "ZCARD")
	semaphoreRelease = newScript(semaphoreReleaseLua).withReads("ZCARD", "ZCARD")
	semaphoreRenew   = newScript(semaphoreRenewLua).withReads("ZCARD")
)

// semaphoreAnswer is the outcome of an ask.
type semaphoreAnswer struct {
	lease   *heldLease // nil if denied
	held    int64      // permits of all processes
	permits int64
	ends    time.Duration // time until the next lease ends unless it is renewed; below 0 if there is none
	wanted  int64         // number of other processes that want permits; known if leases are kept
}

func (a semaphoreAnswer) free() int64 { return max(a.permits-a.held, 0) }

func (a semaphoreAnswer) decision() rules.Decision {
	return rules.Decision{Allowed: true, Reason: rules.ReasonWithin, Limit: a.permits, Remaining: a.free()}
}

// askRedis asks Redis once. After an error nothing is held: if Redis may have granted permits, they
// are released later.
func (s *Semaphore) askRedis(ctx context.Context, w *waiter, permits int64) (semaphoreAnswer, error) {
	now := time.Now()
	if !s.gate.admits(ctx, w.key) {
		s.count(func(stats *SemaphoreStats) { stats.Refused++ })
		return semaphoreAnswer{}, ErrUnavailable
	}
	lease := s.newLease(w.key, now)
	waits := ""
	if w.wake != nil {
		waits = s.process
	}
	limited, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	keeps, more := "", false
	if w.keeps && s.keeping.Load() {
		keeps, more = s.process, s.othersWait(w)
	}
	args := []any{lease.member, permits, s.cfg.Lease.Microseconds(), waits, waitingTTL.Microseconds(), keeps, keptDenied.Microseconds(), more}
	acquire := call{script: semaphoreAcquire, keys: semaphoreKeys(w.key), args: args}
	_ = run(limited, s.client, &acquire) // its command has the error
	s.addHealed(&acquire)
	reply, err := acquire.cmd.Int64Slice()
	if err == nil && len(reply) != 5 {
		err = fmt.Errorf("unexpected answer %v", reply)
	}
	if err != nil {
		s.addOwed(lease)
		ctxErr := ended(ctx)
		s.recordOutcome(limited, w.key, now, err, ctxErr != nil && time.Since(now) < s.cfg.Timeout/2)
		if ctxErr != nil {
			return semaphoreAnswer{}, ctxErr
		}
		return semaphoreAnswer{}, fmt.Errorf("redislimiter: acquire permits: %w", err)
	}
	s.recordOutcome(limited, w.key, now, nil, false)
	got := semaphoreAnswer{held: reply[1], permits: permits, ends: time.Duration(reply[3]) * time.Microsecond, wanted: reply[4]}
	if reply[2] > 0 {
		s.count(func(stats *SemaphoreStats) { stats.Expired += uint64(reply[2]) })
	}
	if reply[0] == 1 {
		if ctx.Err() != nil { // the caller no longer waits for it
			s.release(lease)
			return semaphoreAnswer{}, ctx.Err()
		}
		got.lease = lease
		s.recordHeld(lease)
	}
	if keeps != "" {
		s.keep(w, &got, now)
	}
	return got, nil
}

// release releases a lease and wakes the next waiter. It does not fail: a lease that Redis cannot
// release now is owed.
func (s *Semaphore) release(l *heldLease) {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Timeout)
	defer cancel()
	began := time.Now()
	if !s.gate.admits(ctx, l.key) {
		s.count(func(stats *SemaphoreStats) { stats.Refused++ })
		s.addOwed(l)
		return
	}
	turn, err := s.callRelease(ctx, l.key, l.member)
	s.recordOutcome(ctx, l.key, began, err, false)
	if err != nil {
		s.addOwed(l)
		return
	}
	s.handleTurn(ctx, l.key, turn)
}

// Turns after a release, as lua/semaphore_release.lua returns them.
const (
	turnOurs   = 1
	turnNobody = 2 // no one waits, as far as Redis knows
)

// handleTurn acts on a turn. If it is this process's turn and no one waits here any more, it passes
// the turn on.
func (s *Semaphore) handleTurn(ctx context.Context, key string, turn int64) {
	for turn != 0 && !s.wakeFirst(key) && turn == turnOurs {
		var err error
		if turn, err = s.callRelease(ctx, key); err != nil {
			return // the first waiters ask again after their pause
		}
	}
}

func (s *Semaphore) callRelease(ctx context.Context, key string, members ...any) (turn int64, err error) {
	release := s.releaseCall(key, members...)
	_ = run(ctx, s.client, release) // its command has the error
	s.addHealed(release)
	reply, err := release.cmd.Int64Slice()
	if err == nil && len(reply) != 2 {
		err = fmt.Errorf("unexpected answer %v", reply)
	}
	if err != nil {
		return 0, err
	}
	return reply[1], nil
}

func (s *Semaphore) releaseCall(key string, members ...any) *call {
	return &call{
		script: semaphoreRelease,
		keys:   []string{key, key + waitingSuffix},
		args:   append([]any{s.channel, s.process}, members...),
	}
}

func (s *Semaphore) count(add func(*SemaphoreStats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	add(&s.stats)
}

// addHealed counts the keys of a foreign type that c deleted.
func (s *Semaphore) addHealed(c *call) {
	if c.healed > 0 {
		s.count(func(stats *SemaphoreStats) { stats.Healed += uint64(c.healed) })
	}
}

// recordOutcome records the outcome of a call that began at began. The caller of a hasty call gave
// up too soon to prove anything about the server.
func (s *Semaphore) recordOutcome(ctx context.Context, key string, began time.Time, err error, hasty bool) {
	if err != nil && !hasty {
		s.count(func(stats *SemaphoreStats) { stats.Failures++ })
	}
	s.gate.recordOutcome(ctx, key, began, err, hasty)
}
