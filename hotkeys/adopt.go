package hotkeys

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/hotparam/hotparam/internal/published"
)

// Adopt takes the owner over from the process that holds it, and makes the entries that are
// published under it the set to publish. In Redis it changes only the owner's holder and epoch,
// which fences off the former holder.
//
// Adopt returns the entries that have not expired, with Until on Redis's clock. It also returns
// the time up to which the former holder had judged the counts ([Publisher.Judged]), or zero if
// that is not recorded. Unreadable entries are counted in [PublisherStats].
//
// Call Adopt once, before [Publisher.Run], which then does not claim the owner again, and before
// anything is published. An error means that nothing was adopted; Adopt can then be called again.
// Adopt fails for a publisher with a lease, since such a publisher takes over in Run.
func (p *Publisher) Adopt(ctx context.Context) (hot []published.Hot, judged time.Time, err error) {
	hot, judged, err = p.adopt(ctx)
	if err != nil {
		p.stats.Change(func(s *PublisherStats) { s.Failures++ })
		return nil, time.Time{}, fmt.Errorf("adopt the hot keys of %s: %w", p.cfg.Owner, err)
	}
	return hot, judged, nil
}

// Judged records that all counts before until have been judged, and that the resulting changes
// have been passed to Publish. The next write to Redis includes that time, for the process that
// adopts this owner's part after this one. It does not block.
func (p *Publisher) Judged(until time.Time) { p.judged.Store(until.UnixMilli()) }

// judgedArg returns the time that Judged recorded, as an argument of the scripts.
func (p *Publisher) judgedArg() string {
	if ms := p.judged.Load(); ms > 0 {
		return strconv.FormatInt(ms, 10)
	}
	return ""
}

// adoptHead is the number of strings in the answer before the entries.
const adoptHead = 5

var (
	errAdoptedLate   = errors.New("this publisher has claimed its owner already")
	errAdoptedLeased = errors.New("this publisher has a lease, so it takes over automatically")
)

func (p *Publisher) adopt(ctx context.Context) (hot []published.Hot, judged time.Time, err error) {
	switch {
	case p.cfg.Lease > 0:
		return nil, judged, errAdoptedLeased
	case p.epoch != 0 || p.standby:
		return nil, judged, errAdoptedLate
	}
	answer, err := p.runScript(ctx, "adopt", adoptScript)
	if err != nil {
		return nil, judged, err
	}
	if hot, err = p.inheritEntries("adopt", answer); err != nil {
		return nil, judged, err
	}
	if ms, err := strconv.ParseInt(answer[4], 10, 64); err == nil {
		judged = time.UnixMilli(ms)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range hot {
		p.sent[h.Key.String()] = entryTermsOf(h)
		p.desired.adopt(h)
	}
	p.stats.Change(func(s *PublisherStats) { s.Keys = len(p.sent) })
	return hot, judged, nil
}

// inheritEntries records a claim whose answer lists the owner's entries, and returns those
// entries.
func (p *Publisher) inheritEntries(name string, answer []string) ([]published.Hot, error) {
	if len(answer) < adoptHead || (len(answer)-adoptHead)%3 != 0 {
		return nil, fmt.Errorf("unexpected answer of %d strings", len(answer))
	}
	unreadable, err := strconv.ParseUint(answer[3], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("number of unreadable entries: %w", err)
	}
	if err := p.recordClaim(name, answer); err != nil {
		return nil, err
	}
	var hot []published.Hot
	for e := answer[adoptHead:]; len(e) > 0; e = e[3:] {
		rate, err := strconv.ParseFloat(e[1], 64)
		h, ok := readEntry(e[0], e[2], rate)
		if err != nil || !ok || publishable(h) != nil {
			unreadable++ // the next rewrite removes it, or it expires
			continue
		}
		hot = append(hot, h)
	}
	p.stats.Change(func(s *PublisherStats) { s.Unreadable += unreadable })
	if p.cfg.Outcomes != nil {
		p.cfg.Outcomes.Inherit(hot)
	}
	return hot, nil
}
