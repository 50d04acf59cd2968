package hotkeys

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/hotparam/hotparam/wire"
)

// DefaultLease is a lease that lets another aggregator take over within two
// seconds of the holder's death, and outlives a call to Redis that is not
// answered in time.
const DefaultLease = 1500 * time.Millisecond

const (
	// maxLease is the longest lease: one that lasts longer is, to the claim
	// script, of before Redis's clock was set back.
	maxLease = time.Minute
	// minStandby is the shortest time between two claims of a standby.
	minStandby = 5 * time.Millisecond
)

// leasing is what the publisher's goroutine knows of its claim.
type leasing struct {
	standby bool          // another process holds the owner, by all that is known
	rest    time.Duration // for how long it does at least; of the last claim
	leaving bool          // the owner is let go of: that another has it by now is as it should be
	silence time.Duration // for how long a claim holds after its holder's last word: the lease, where there is one
}

// silenceAfter returns for how long a claim without a lease holds after its holder's
// last word: two renewals may fail. It matters to one that was fenced alone.
func silenceAfter(renew cron.Schedule, beat time.Duration) time.Duration {
	if s, ok := renew.(cron.ConstantDelaySchedule); ok {
		return min(s.Delay*5/2, beat)
	}
	return beat
}

// newHolder returns a name for this process as a holder of owners, by which people
// find it, and which no other process has.
func newHolder() string {
	host, _ := os.Hostname() // without one the rest will do
	host = strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f || r == '/' {
			return '_'
		}
		return r
	}, host[:min(len(host), 64)])
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), newRunID())
}

// idle reports whether the publisher must not write.
func (p *Publisher) idle() bool { return p.standby }

// resume claims the owner if another held it, and publishes if it is ours.
func (p *Publisher) resume(ctx context.Context) error {
	if p.standby {
		if err := p.claim(ctx); err != nil {
			return err
		}
	}
	return p.renew(ctx)
}

// hold keeps the lease, or tries to get it.
func (p *Publisher) hold(ctx context.Context) error {
	if p.standby {
		return p.resume(ctx)
	}
	if p.cfg.Lease == 0 {
		return nil // renewals will do: nobody waits for the end of the claim
	}
	if err := p.settle(ctx); err != nil || p.idle() {
		return err
	}
	answer, err := p.call(ctx, "lease", leaseScript, 1)
	if err != nil || answer != nil {
		return err
	}
	return p.settle(ctx)
}

// letGo ends the claim, so that another may take over at once.
func (p *Publisher) letGo(ctx context.Context) error {
	if p.standby || p.epoch == 0 {
		return nil
	}
	p.leaving = true
	_, err := p.call(ctx, "lease", leaseScript, 0)
	return err
}

// untilHold is how long it is until hold is due: a holder extends its lease each
// third of it, a standby claims each quarter, and when the lease that it saw is
// over.
func (p *Publisher) untilHold() time.Duration {
	if !p.standby {
		return p.silence / 3
	}
	return min(max(p.rest+time.Millisecond, minStandby), p.silence/4)
}

// standBy notes that another process holds the owner. The desired set is kept
// current, and what is known of Redis is forgotten: the holder changes it.
func (p *Publisher) standBy(answer []string) error {
	if len(answer) != 4 {
		return fmt.Errorf("standby: unexpected answer %q", answer)
	}
	rest, err := strconv.ParseInt(answer[1], 10, 64)
	if err != nil {
		return fmt.Errorf("standby: %w", err)
	}
	p.standby, p.rest = true, time.Duration(rest)*time.Millisecond
	p.rewrite, p.version, p.own = false, wire.HotVersion{}, ""
	clear(p.sent)
	p.stats.keys.Store(0)
	p.stats.suspects.Store(0)
	if p.leaving {
		return nil
	}
	if !p.outage.isOn() {
		p.stats.connected.Store(true)
	}
	if holder := fmt.Sprintf("%.160q, epoch %.20s", answer[3], answer[2]); answer[0] == statusFenced {
		p.stats.fencedBy.Store(&holder)
	}
	if p.stats.standby.Swap(true) {
		return nil
	}
	level, message := slog.LevelInfo, "standing by: another process publishes this part of the hot set"
	if answer[0] == statusFenced {
		level, message = slog.LevelError, "fenced: another process has taken this part of the hot set; standing by until it ends or falls silent"
	}
	if unlogged, ok := p.lines.Allow(lineRate, time.Now()); ok {
		p.cfg.Logger.Log(context.Background(), level, message, "owner", p.cfg.Owner, "holder", answer[3], "epoch", answer[2], "unlogged", unlogged)
	}
	return nil
}

// takeOver goes on where another holder left off. A key that both have found
// keeps what is published of it; one that was hot here and is no more is cooled;
// one that was never hot here is left as it is: this process may not have counted
// for long enough to know. It is over with its time to live, unless it is found
// here, too.
func (p *Publisher) takeOver(answer []string) error {
	p.version, p.own = wire.HotVersion{}, ""
	hot, err := p.inherit("claim", answer)
	if err != nil {
		return err
	}
	clear(p.sent)
	p.mu.Lock()
	p.desired.vacate()
	for _, h := range hot {
		member := h.Key.String()
		_, cooled := p.desired.cooled[member]
		if cooled || p.desired.agree(member, h.Since) {
			p.sent[member] = entryTermsOf(h)
		}
	}
	p.mu.Unlock()
	p.stats.keys.Store(int64(len(p.sent)))
	p.standby = false
	p.stats.standby.Store(false)
	p.stats.fencedBy.Store(nil)
	p.stats.taken.Add(1)
	p.cfg.Logger.Info("took over", "owner", p.cfg.Owner, "epoch", p.epoch, "published", len(hot))
	return nil
}
