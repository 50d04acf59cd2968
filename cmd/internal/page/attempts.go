package page

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/loglimit"
)

// Limits on wrong tokens by address. A token has at least 128 bits, so these limits do not keep
// it secret. They keep logs and processor calm, and protect short tokens.
const (
	attemptBurst = 10              // wrong tokens at once
	attemptEvery = 6 * time.Second // interval after which one more is allowed
	maxAddresses = 1024            // addresses remembered; further ones share one account
)

// attempts counts wrong tokens by address. It is safe for concurrent use.
type attempts struct {
	log   *slog.Logger
	total atomic.Uint64

	lines loglimit.Limit

	mu   sync.Mutex
	free map[base.Peer]time.Time // time at which an address has its whole burst again
}

func newAttempts(log *slog.Logger) *attempts {
	return &attempts{log: log, free: make(map[base.Peer]time.Time)}
}

// wait returns how long an address must wait before the next attempt, or 0.
func (a *attempts) wait(remote string, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	allowed := a.free[a.accountOf(remote)].Add(-(attemptBurst - 1) * attemptEvery)
	if !allowed.After(now) {
		return 0
	}
	return allowed.Sub(now)
}

// recordFailure records a wrong token.
func (a *attempts) recordFailure(remote string, now time.Time) {
	a.total.Add(1)
	a.mu.Lock()
	defer a.mu.Unlock()
	account := a.accountOf(remote)
	free := a.free[account]
	if free.Before(now) {
		free = now
	}
	a.free[account] = free.Add(attemptEvery)
	if _, ok := a.lines.Allow(oneAMinute, now); ok {
		a.log.Warn("page: a wrong token", "remote", remote)
	}
	if len(a.free) > maxAddresses {
		for other, free := range a.free {
			if free.Before(now) {
				delete(a.free, other)
			}
		}
	}
}

// accountOf returns the peer whose account an address uses. If too many accounts are remembered,
// new peers share the zero one. a.mu is held.
func (a *attempts) accountOf(remote string) base.Peer {
	peer := base.PeerAt(remote)
	if _, known := a.free[peer]; !known && len(a.free) >= maxAddresses {
		return base.Peer{}
	}
	return peer
}
