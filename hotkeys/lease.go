package hotkeys

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/published"
)

// DefaultLease is a lease with which a standby takes over within two seconds after the
// holder died, and which survives one call to Redis that times out.
const DefaultLease = 1500 * time.Millisecond

const (
	// maxLease bounds a lease. If one has longer to run, the claim script treats it as one from
	// before Redis's clock was set back.
	maxLease = time.Minute
	// minStandby is the shortest time between two claims of a standby.
	minStandby = 5 * time.Millisecond
)

// leasing is the state of the publisher's claim.
type leasing struct {
	standby bool          // another process holds the owner, as far as is known
	left    time.Duration // time that was left of its lease at the last claim
	leaving bool          // whether the owner is being released, so that another process may hold it already
	silence time.Duration // time that a claim lasts without a renewal: the lease, if there is one
}

// silenceAfter returns how long a claim without a lease lasts without a renewal. Two renewals may
// fail. Only a fenced publisher waits that long, to claim the owner back.
func silenceAfter(beat time.Duration) time.Duration { return min(renewEvery*5/2, beat) }

// newHolder returns a unique name for this process as a holder of owners: host name,
// process id, and a random number.
func newHolder() string {
	host, _ := os.Hostname() // the rest is unique without it
	host = strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f || r == '/' {
			return '_'
		}
		return r
	}, host[:min(len(host), 64)])
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), newID())
}

// resume claims the owner if this process stands by, and renews its entries if it holds
// the owner.
func (p *Publisher) resume(ctx context.Context) error {
	if p.standby {
		if err := p.claim(ctx); err != nil {
			return err
		}
	}
	return p.renew(ctx)
}

// keepClaim extends the lease, or tries to get it.
func (p *Publisher) keepClaim(ctx context.Context) error {
	if p.standby {
		return p.resume(ctx)
	}
	if p.cfg.Lease == 0 {
		return nil // renewals suffice: there is no standby that waits for the claim's end
	}
	if err := p.settle(ctx); err != nil || p.standby {
		return err
	}
	answer, err := p.runScript(ctx, "lease", leaseScript, 1)
	if err != nil || answer != nil {
		return err
	}
	return p.settle(ctx)
}

// release releases the owner, so that a standby can take over at once.
func (p *Publisher) release(ctx context.Context) error {
	if p.standby || p.epoch == 0 {
		return nil
	}
	p.leaving = true
	_, err := p.runScript(ctx, "lease", leaseScript, 0)
	return err
}

// untilClaim returns the time until keepClaim is due. A holder extends its lease each third of
// it. A standby claims each quarter of the lease, and when the lease that it saw has expired.
func (p *Publisher) untilClaim() time.Duration {
	if !p.standby {
		return p.silence / 3
	}
	return min(max(p.left+time.Millisecond, minStandby), p.silence/4)
}

// standBy records that another process holds the owner. It keeps the desired set, and forgets the
// recorded state of Redis, since the holder changes it.
func (p *Publisher) standBy(answer []string) error {
	if len(answer) != 4 {
		return unknownAnswer("standby", answer)
	}
	left, err := strconv.ParseInt(answer[1], 10, 64)
	if err != nil {
		return fmt.Errorf("standby: %w", err)
	}
	p.standby, p.left = true, time.Duration(left)*time.Millisecond
	p.rewrite, p.version, p.ownVersion = false, published.Version{}, ""
	clear(p.sent)
	p.stats.Change(func(s *PublisherStats) { s.Keys, s.Suspects = 0, 0 })
	if p.leaving {
		return nil
	}
	if !p.outage.isOn() {
		p.stats.Change(func(s *PublisherStats) { s.Connected = true })
	}
	if holder := fmt.Sprintf("%.160q, epoch %.20s", answer[3], answer[2]); answer[0] == statusFenced {
		p.stats.Change(func(s *PublisherStats) { s.FencedBy = holder })
	}
	was := false
	p.stats.Change(func(s *PublisherStats) { was, s.Standby = s.Standby, true })
	if was {
		return nil
	}
	level, message := slog.LevelInfo, "standing by: another process publishes this part of the hot set"
	if answer[0] == statusFenced {
		level, message = slog.LevelError, "fenced: another process has taken this part of the hot set; standing by until it stops or no longer renews its claim"
	}
	p.lines.Log(lineRate, p.cfg.Logger, level, message, "owner", p.cfg.Owner, "holder", answer[3], "epoch", answer[2])
	return nil
}

// takeOver continues where the last holder stopped. An entry that is hot here too is not changed.
// Others go to Inherit, which decides. Without Inherit, the next change removes an entry that was
// hot here and has cooled. One that was never hot here is left to expire: this process may not
// have counted long enough to know.
func (p *Publisher) takeOver(answer []string) error {
	first := p.epoch == 0 && !p.standby // claimed, not taken over
	p.version, p.ownVersion = published.Version{}, ""
	hot, err := p.inheritEntries("claim", answer)
	if err != nil {
		return err
	}
	clear(p.sent)
	p.mu.Lock()
	p.desired.vacate()
	for _, h := range hot {
		member := h.Key.String()
		_, cooled := p.desired.cooled[member]
		switch {
		case p.desired.confirm(member, h.Since):
		case p.cfg.Inherit != nil:
			p.desired.adopt(h)
		case !cooled:
			continue
		}
		p.sent[member] = entryTermsOf(h)
	}
	p.mu.Unlock()
	p.standby = false
	p.stats.Change(func(s *PublisherStats) {
		s.Keys, s.Standby, s.FencedBy = len(p.sent), false, ""
		if !first {
			s.Takeovers++
		}
	})
	if len(hot) > 0 && p.cfg.Inherit != nil {
		p.cfg.Inherit(hot)
	}
	if first && len(hot) == 0 {
		return nil
	}
	p.cfg.Logger.Info("took over", "owner", p.cfg.Owner, "epoch", p.epoch, "published", len(hot))
	return nil
}
