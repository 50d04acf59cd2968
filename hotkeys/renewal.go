package hotkeys

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/hotparam/hotparam/internal/published"
)

// Bounds of one call of a renewal. Such a call takes Redis some 2 ms, in which it serves no one
// else.
const (
	maxRenewed    = 250 // entries
	maxHeartbeats = 500 // instances
)

// renew extends our entries, with their current counts, and writes the suspects, the instances
// and the heartbeat. Changes that arrive in between are written first.
func (p *Publisher) renew(ctx context.Context) error {
	if err := p.settle(ctx); err != nil || p.standby {
		return err
	}
	top := p.top()
	p.mu.Lock()
	suspects := p.suspected.appendTop(nil)
	instances := p.suspected.appendInstances(nil, time.Now())
	p.mu.Unlock()
	p.stats.Change(func(s *PublisherStats) { s.Instances = len(instances) / 2 })
	members := slices.Collect(maps.Keys(top))
	for suspectArgs := len(suspects); suspectArgs >= 0 || len(members)+len(instances) > 0; suspectArgs = -1 {
		select {
		case <-p.wake:
			if err := p.settle(ctx); err != nil || p.standby {
				return err
			}
			top = p.top()
		default:
		}
		n, m := min(len(members), maxRenewed), min(len(instances), 2*maxHeartbeats)
		ok, err := p.runRenewal(ctx, func(again bool) []any {
			if again { // settle may have written a newer set
				top = p.top()
			}
			var entries []any
			for _, member := range members[:n] {
				h, wanted := top[member]
				if _, ok := p.sent[member]; ok && wanted {
					entries = appendEntry(entries, p.withOutcomes(h))
				}
			}
			args := append([]any{len(entries), suspectArgs}, entries...)
			return append(append(args, suspects...), instances[:m]...)
		})
		if err != nil || !ok {
			return err
		}
		if suspectArgs >= 0 {
			p.stats.Change(func(s *PublisherStats) { s.Suspects = suspectArgs / 2 })
		}
		members, suspects, instances = members[n:], nil, instances[m:]
	}
	p.stats.Change(func(s *PublisherStats) { s.Renewals++ })
	p.writeSummary(ctx)
	if p.untidy {
		p.untidy = false
		return p.prune(ctx)
	}
	return nil
}

// writeSuspects writes the suspects, and the heartbeat with them, between two renewals.
func (p *Publisher) writeSuspects(ctx context.Context) error {
	if err := p.settle(ctx); err != nil || p.standby {
		return err
	}
	p.mu.Lock()
	suspects := p.suspected.appendTop(nil)
	p.mu.Unlock()
	args := append([]any{0, len(suspects)}, suspects...)
	ok, err := p.runRenewal(ctx, func(bool) []any { return args })
	if ok {
		p.stats.Change(func(s *PublisherStats) { s.Suspects = len(suspects) / 2 })
	}
	return err
}

// runRenewal runs the renewal's script. If Redis has lost state that the script needs,
// runRenewal restores it and runs the script again, with new arguments. It reports whether
// the script succeeded.
func (p *Publisher) runRenewal(ctx context.Context, args func(again bool) []any) (bool, error) {
	for i := range 2 {
		answer, err := p.runScript(ctx, "renew", renewScript, args(i > 0)...)
		if err != nil || answer != nil {
			return answer != nil, err
		}
		if err := p.settle(ctx); err != nil || p.standby {
			return false, err
		}
	}
	return false, nil
}

// strangeTime is how long an unreadable entry is left to its owner, which rewrites its
// part of the set if it is alive.
const strangeTime = rewriteTime

// prune removes the expired entries of all owners, since a dead owner cannot, and
// entries that have been unreadable for strangeTime.
func (p *Publisher) prune(ctx context.Context) error {
	if err := p.settle(ctx); err != nil || p.standby {
		return err
	}
	now := time.Now()
	args := []any{published.EncodePush(&published.Push{Beat: p.cfg.BeatTTL})}
	for member, since := range p.strange {
		if now.Sub(since) >= strangeTime {
			args = append(args, member)
		}
	}
	answer, err := p.runScript(ctx, "prune", pruneScript, args...)
	if err := p.recordPart(&p.pruning, err); err != nil {
		return err
	}
	if answer == nil {
		return p.settle(ctx)
	}
	if len(answer) < 3 {
		return unknownAnswer("prune", answer)
	}
	n, err := strconv.ParseUint(answer[2], 10, 64)
	if err != nil {
		return fmt.Errorf("prune: count: %w", err)
	}
	if n > 0 {
		p.ownVersion = p.version.String()
	}
	p.stats.Change(func(s *PublisherStats) { s.Pruned += n })
	strange := make(map[string]time.Time, len(answer)-3)
	for _, member := range answer[3:] {
		if since, ok := p.strange[member]; ok {
			strange[member] = since
		} else {
			strange[member] = now
		}
	}
	p.strange = strange
	return nil
}

func (p *Publisher) trim(ctx context.Context) error {
	if err := p.settle(ctx); err != nil || p.standby {
		return err
	}
	_, err := p.runScript(ctx, "trim", trimScript, keepEvents.Milliseconds())
	return p.recordPart(&p.trimming, err)
}
