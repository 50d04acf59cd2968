package hotkeys

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
)

// runScript runs a script. If the script refuses, runScript records the reason and returns a
// nil answer without an error.
func (p *Publisher) runScript(ctx context.Context, name string, script *redis.Script, args ...any) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, p.outage.timeout(p.cfg.Timeout))
	defer cancel()
	head := []any{
		p.cfg.Owner, p.holder, p.epoch, p.version.Run, p.version.N,
		p.layout.Changed, published.MaxPush,
		p.cfg.EntryTTL.Milliseconds(), p.cfg.BeatTTL.Milliseconds(), maxEvents,
		p.cfg.Lease.Milliseconds(), p.ownVersion, p.silence.Milliseconds(), p.judgedArg(),
	}
	run := script.Run
	if !p.known[script] { // running it by its digest would probably cost one more round trip
		run = script.Eval
	}
	all, err := run(ctx, p.client, ownerKeys(p.layout, p.cfg.Owner), append(head, args...)...).StringSlice()
	if err == nil {
		p.known[script] = true
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	answer, report, ok := cutReport(all)
	if !ok {
		return nil, unknownAnswer(name, all)
	}
	p.recordReport(name, report)
	switch answer[0] {
	case statusOK:
		return answer, p.recordSuccess(name, answer)
	case statusFenced, statusStandby:
		return nil, p.standBy(answer)
	case statusLost:
		p.reclaim = true
	case statusBack, statusGone:
		p.rewrite = true
	case statusSchema:
		return nil, fmt.Errorf("%s: %s is %q, but this program supports only 1: use the program that wrote it, or another namespace", name, p.layout.Schema, answer[1:])
	default:
		return nil, unknownAnswer(name, answer)
	}
	return nil, nil
}

// unknownAnswer returns the error of a script's answer that no version of the script gives.
func unknownAnswer(script string, answer []string) error {
	return fmt.Errorf("script %s: Redis answered %q, which this program does not know", script, answer)
}

// recordSuccess records the version in a script's answer. Answers of claim and adopt are left to
// recordClaim, which compares them with the last version first. Those of lease have no version.
func (p *Publisher) recordSuccess(name string, answer []string) error {
	if name != "claim" && name != "adopt" && name != "lease" {
		if len(answer) < 2 {
			return unknownAnswer(name, answer)
		}
		v, err := published.ParseVersion(answer[1])
		if err != nil {
			return fmt.Errorf("%s: %w, got %q", name, err, answer[1])
		}
		p.recordVersion(v)
	}
	if !p.outage.isOn() { // otherwise recovered does it, once all pending changes are written
		p.stats.Change(func(s *PublisherStats) { s.Connected = true })
	}
	return nil
}

// ownerKeys returns the KEYS of an owner's scripts, in the order in which common.lua unpacks them.
func ownerKeys(l published.Layout, owner string) []string {
	return []string{l.Hot, l.Info, l.Version, l.Owners, l.Beat, l.Events, l.Schema, l.Suspects, l.Suspects + ":" + owner, l.Instances}
}
