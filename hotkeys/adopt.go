package hotkeys

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Adopt takes the owner over from whichever process holds it, and takes the entries that
// are published under it for those to publish. In Redis it changes only the owner's
// holder and epoch, which fences off the process that held it. It returns the entries
// that have not expired, with Until on Redis's clock, and up to when that process had judged
// what is counted ([Publisher.Judged]), zero if it has not said. Unreadable entries are counted
// in [PublisherStats].
//
// Call Adopt once, before [Publisher.Run], which then does not claim the owner again, and
// before anything is published. An error means that nothing was adopted; Adopt can then be
// called again. There is nothing to adopt for a publisher with a lease, which takes over
// by itself: for that Adopt fails.
func (p *Publisher) Adopt(ctx context.Context) (hot []rules.Hot, judged time.Time, err error) {
	hot, judged, err = p.adopt(ctx)
	if err != nil {
		p.stats.Change(func(s *PublisherStats) { s.Failures++ })
		return nil, time.Time{}, fmt.Errorf("adopt the hot keys of %s: %w", p.cfg.Owner, err)
	}
	return hot, judged, nil
}

// Judged records that all counts of before until have been judged. What that changed has been
// passed to Publish. It is written with whatever is written next, for the process that adopts
// this owner's part after this one. It does not block.
func (p *Publisher) Judged(until time.Time) { p.judged.Store(until.UnixMilli()) }

// judgedArg returns what Judged recorded, as the scripts take it.
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

func (p *Publisher) adopt(ctx context.Context) (hot []rules.Hot, judged time.Time, err error) {
	switch {
	case p.cfg.Lease > 0:
		return nil, judged, errAdoptedLeased
	case p.epoch != 0 || p.standby:
		return nil, judged, errAdoptedLate
	}
	answer, err := p.call(ctx, "adopt", adoptScript)
	if err != nil {
		return nil, judged, err
	}
	if hot, err = p.inherit("adopt", answer); err != nil {
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

// inherit records a claim whose answer lists the owner's entries, and returns these.
func (p *Publisher) inherit(name string, answer []string) ([]rules.Hot, error) {
	if len(answer) < adoptHead || (len(answer)-adoptHead)%3 != 0 {
		return nil, fmt.Errorf("unexpected answer of %d strings", len(answer))
	}
	unreadable, err := strconv.ParseUint(answer[3], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("unreadable entries: %w", err)
	}
	if err := p.recordClaim(name, answer); err != nil {
		return nil, err
	}
	var hot []rules.Hot
	for e := answer[adoptHead:]; len(e) > 0; e = e[3:] {
		rate, err := strconv.ParseFloat(e[1], 64)
		h, ok := readEntry(e[0], e[2], rate)
		if err != nil || !ok || publishable(h) != nil {
			unreadable++ // it goes with the next rewrite, or expires
			continue
		}
		hot = append(hot, h)
	}
	p.stats.Change(func(s *PublisherStats) { s.Unreadable += unreadable })
	return hot, nil
}
