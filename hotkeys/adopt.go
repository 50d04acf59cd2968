package hotkeys

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/hotparam/hotparam"
)

// Adopt takes the owner over, whoever has it, and makes what is published under
// it what this publisher wants published: nothing is changed in Redis but the
// owner's epoch, so whoever had it before writes no more. It returns the keys,
// with their Until on Redis's clock; what is over is left out, and what cannot be
// read is counted. Call it once, before [Publisher.Run], which then claims no
// more, and before anybody publishes. An error means that nothing was adopted, as
// Redis did not answer within the configuration's Timeout; it may be tried again.
func (p *Publisher) Adopt(ctx context.Context) ([]hotparam.Hot, error) {
	hot, err := p.adopt(ctx)
	if err != nil {
		p.stats.failures.Add(1)
		return nil, fmt.Errorf("adopt the hot keys of %s: %w", p.cfg.Owner, err)
	}
	return hot, nil
}

// adoptHead is how many strings of the answer come before the entries.
const adoptHead = 4

var (
	errAdoptedLate   = errors.New("this publisher has claimed its owner already")
	errAdoptedLeased = errors.New("this publisher has a lease: it takes over by itself")
)

func (p *Publisher) adopt(ctx context.Context) ([]hotparam.Hot, error) {
	switch {
	case p.cfg.Lease > 0:
		return nil, errAdoptedLeased
	case p.epoch != 0 || p.standby:
		return nil, errAdoptedLate
	}
	answer, err := p.call(ctx, "adopt", adoptScript)
	if err != nil {
		return nil, err
	}
	hot, err := p.inherit("adopt", answer)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range hot {
		p.sent[h.Key.String()] = entryTermsOf(h)
		p.desired.adopt(h)
	}
	p.stats.keys.Store(int64(len(p.sent)))
	return hot, nil
}

// inherit notes a claim, and reads what it was told of the owner's entries.
func (p *Publisher) inherit(name string, answer []string) ([]hotparam.Hot, error) {
	if len(answer) < adoptHead || (len(answer)-adoptHead)%3 != 0 {
		return nil, fmt.Errorf("unexpected answer of %d strings", len(answer))
	}
	unreadable, err := strconv.ParseUint(answer[3], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("unreadable entries: %w", err)
	}
	if err := p.claimed(name, answer); err != nil {
		return nil, err
	}
	var hot []hotparam.Hot
	for e := answer[adoptHead:]; len(e) > 0; e = e[3:] {
		rate, err := strconv.ParseFloat(e[1], 64)
		h, ok := readEntry(e[0], e[2], rate)
		if err != nil || !ok || publishable(h) != nil {
			unreadable++ // a rewrite takes it away, or its end does
			continue
		}
		hot = append(hot, h)
	}
	p.stats.unreadable.Add(unreadable)
	return hot, nil
}
