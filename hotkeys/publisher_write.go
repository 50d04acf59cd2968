package hotkeys

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
)

// writer is the state of the publisher's goroutine, and its knowledge about Redis.
type writer struct {
	epoch      int64             // epoch of our claim; 0 before the first
	reclaim    bool              // the owner must be claimed, or claimed again
	rewrite    bool              // Redis lost state: the whole set must be written
	version    published.Version // version as last seen
	ownVersion string            // version of our last change; empty if there is none since the claim
	// sent holds the entries in Redis by member. An entry whose write failed may be
	// there too: it has zero terms, so that it is written again.
	sent    map[string]entryTerms
	untidy  bool                   // some entries can only be removed by prune
	strange map[string]time.Time   // entries that the last prune could not read → when that was first found
	known   map[*redis.Script]bool // scripts in Redis's script cache, unless it has restarted
	troubles
	leasing
}

// newID returns 64 random bits in hex.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Run claims the owner and publishes until ctx ends. It then tries once more to publish
// pending changes, releases the owner, and leaves the entries to expire, unless a
// successor adopts them before. Failures are retried, counted, and logged once per
// outage. Run returns nil, and is called once.
func (p *Publisher) Run(ctx context.Context) error {
	renew, prune, trim := time.NewTicker(renewEvery), time.NewTicker(p.pruneEvery), time.NewTicker(p.trimEvery)
	defer renew.Stop()
	defer prune.Stop()
	defer trim.Stop()
	retry := time.NewTimer(0) // the first try claims
	defer retry.Stop()
	lease, stoodBy := time.NewTimer(p.untilClaim()), p.standby
	defer lease.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			p.finish(ctx)
			return nil
		case <-retry.C:
			if err = p.resume(ctx); err == nil { // which also writes pending changes
				p.recordRecovery()
			}
		case <-lease.C:
			err = p.unlessFailing(ctx, p.keepClaim)
			lease.Reset(p.untilClaim())
		case <-p.wake:
			err = p.unlessFailing(ctx, p.settle)
		case <-p.suspect:
			err = p.unlessFailing(ctx, p.writeSuspects)
		case <-renew.C:
			err = p.unlessFailing(ctx, p.renew)
		case <-prune.C:
			err = p.unlessFailing(ctx, p.prune)
		case <-trim.C:
			err = p.unlessFailing(ctx, p.trim)
		}
		if err != nil {
			// Redis may still run a script whose answer did not come. A new
			// claim fences it off.
			p.reclaim = true
			if !aboutCommand(err) { // it may have restarted
				clear(p.known)
			}
			if ctx.Err() == nil {
				retry.Reset(p.recordFailure(err))
			}
		}
		if p.standby != stoodBy {
			stoodBy = p.standby
			lease.Reset(p.untilClaim())
		}
	}
}

// unlessFailing does some work, except in an outage: the retry then writes all changes.
func (p *Publisher) unlessFailing(ctx context.Context, work func(context.Context) error) error {
	if p.outage.isOn() {
		return nil
	}
	return work(ctx)
}

// finish tries once more to publish pending changes and releases the owner, within the
// timeout of one call.
func (p *Publisher) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.cfg.Timeout)
	defer cancel()
	if err := p.settle(ctx); err != nil {
		p.cfg.Logger.Warn("the last change was not published", "err", err)
	}
	if err := p.release(ctx); err != nil {
		p.cfg.Logger.Warn("the owner was not released; the claim expires", "err", err)
	}
}

// maxSteps bounds the steps of one settle: a claim, a rewrite or a change, and each
// again, since Redis may lose state in between.
const maxSteps = 6

var errUnsettled = errors.New("hot keys: Redis keeps losing its state, or another publisher keeps changing the run id")

// settle makes this owner's part in Redis equal to the desired set, with as many calls as needed.
// It does nothing on a standby.
func (p *Publisher) settle(ctx context.Context) error {
	for range maxSteps {
		var err error
		var done bool
		switch {
		case p.standby:
			return nil
		case p.reclaim:
			err = p.claim(ctx)
		case p.rewrite:
			done, err = p.rewriteAll(ctx)
		default:
			done, err = p.change(ctx)
		}
		if err != nil || done {
			return err
		}
	}
	return errUnsettled
}

func (p *Publisher) claim(ctx context.Context) error {
	stoodBy := 0
	if p.standby || p.epoch == 0 && p.cfg.Inherit != nil {
		stoodBy = 1
	}
	answer, err := p.runScript(ctx, "claim", claimScript, stoodBy)
	if err != nil || answer == nil {
		return err
	}
	if len(answer) > 3 {
		return p.takeOver(answer)
	}
	return p.recordClaim("claim", answer)
}

// recordClaim records the answer to a claim: "ok", the version in force, our epoch.
func (p *Publisher) recordClaim(name string, answer []string) error {
	if len(answer) < 3 {
		return unknownAnswer(name, answer)
	}
	epoch, err := strconv.ParseInt(answer[2], 10, 64)
	if err != nil {
		return fmt.Errorf("%s: epoch: %w", name, err)
	}
	seen, err := published.ParseVersion(answer[1])
	p.reclaim, p.epoch = false, epoch
	switch {
	case err != nil: // there is no version: Redis is new, or has lost its state
		p.rewrite = true
	case p.version.IsZero():
		p.recordVersion(seen)
	case seen.Run != p.version.Run || seen.N < p.version.N:
		p.rewrite = true
	}
	p.claims.Log(lineRate, p.cfg.Logger, slog.LevelInfo, "claimed", "owner", p.cfg.Owner, "epoch", epoch)
	return nil
}

// change writes the difference between the desired set and the entries in Redis. done is false if
// something else must be done first.
func (p *Publisher) change(ctx context.Context) (done bool, err error) {
	top := p.top()
	change := published.Push{Beat: p.cfg.BeatTTL}
	var cool []any
	for member, h := range top {
		if t, ok := p.sent[member]; !ok || t != entryTermsOf(h) {
			change.Hot = append(change.Hot, published.PushEntry{Hot: p.withOutcomes(h), TTL: p.cfg.EntryTTL})
			p.sent[member] = entryTerms{}
		}
	}
	for member := range p.sent {
		if _, ok := top[member]; !ok {
			cool = append(cool, member)
		}
	}
	if len(change.Hot) == 0 && len(cool) == 0 {
		return true, nil
	}
	args := []any{published.EncodePush(&change), 3 * len(change.Hot)}
	for i := range change.Hot {
		args = appendEntry(args, change.Hot[i].Hot)
	}
	answer, err := p.runScript(ctx, "change", changeScript, append(args, cool...)...)
	if err != nil || answer == nil {
		return false, err
	}
	p.recordSent(top)
	p.stats.Change(func(s *PublisherStats) { s.Changes++ })
	return true, nil
}

func (p *Publisher) rewriteAll(ctx context.Context) (done bool, err error) {
	top := p.top()
	change := published.Push{Beat: p.cfg.BeatTTL}
	var entries []any
	for member, h := range top {
		h = p.withOutcomes(h)
		change.Hot = append(change.Hot, published.PushEntry{Hot: h, TTL: p.cfg.EntryTTL})
		entries = appendEntry(entries, h)
		p.sent[member] = entryTerms{}
	}
	args := []any{newID(), published.EncodePush(&change)}
	answer, err := p.runScript(ctx, "rewrite", rewriteScript, append(args, entries...)...)
	if err != nil || answer == nil {
		return false, err
	}
	p.rewrite = false
	p.recordSent(top)
	p.stats.Change(func(s *PublisherStats) { s.Rewrites++ })
	p.writes.Log(lineRate, p.cfg.Logger, slog.LevelInfo, "wrote the whole set of hot keys", "owner", p.cfg.Owner, "keys", len(top), "version", p.version)
	return true, nil
}

// top returns the entries to publish, without outcomes.
func (p *Publisher) top() map[string]published.Hot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.desired.top()
}

// withOutcomes returns an entry as it is written. Only entries that are about to be written get
// outcomes, as there are up to 1,000 others at each change.
func (p *Publisher) withOutcomes(h published.Hot) published.Hot {
	if p.cfg.Outcomes != nil {
		h.Outcomes = p.cfg.Outcomes.Of(h.Key, h.Since)
	}
	return h
}

// recordSent records that the entries in Redis are those of top.
func (p *Publisher) recordSent(top map[string]published.Hot) {
	p.ownVersion = p.version.String()
	clear(p.sent)
	for member, h := range top {
		p.sent[member] = entryTermsOf(h)
	}
	p.stats.Change(func(s *PublisherStats) { s.Keys = len(p.sent) })
}

func (p *Publisher) recordVersion(v published.Version) {
	p.version = v
	p.stats.Change(func(s *PublisherStats) { s.Version = v.String() })
}

// appendEntry appends an entry as arguments of a script: member, score, info.
func appendEntry(args []any, h published.Hot) []any {
	h.Until = time.Time{} // the script fills it in
	return append(args, h.Key.String(), h.Rate, published.EncodeInfo(h))
}
