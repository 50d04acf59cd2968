package page

import (
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

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
	free map[netip.Prefix]time.Time // time at which an address has its whole burst again
}

func newAttempts(log *slog.Logger) *attempts {
	return &attempts{log: log, free: make(map[netip.Prefix]time.Time)}
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

// accountOf returns the account of an address: the IPv4 address, or the IPv6 /64, since one client
// has all of it. If too many accounts are remembered, new addresses share the zero account. a.mu
// is held.
func (a *attempts) accountOf(remote string) netip.Prefix {
	address, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	ip, bits := address.Addr().Unmap().WithZone(""), 32
	if ip.Is6() {
		bits = 64
	}
	account, _ := ip.Prefix(bits) // the length fits the address
	if _, known := a.free[account]; !known && len(a.free) >= maxAddresses {
		return netip.Prefix{}
	}
	return account
}
