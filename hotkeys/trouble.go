package hotkeys

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/loglimit"
)

// troubles are the outages of a publisher, and the limits of its log lines. They are
// used by its goroutine only.
type troubles struct {
	outage   outage // outage of claims, changes and renewals
	partial  outage // outage of the stream or the channel only: watchers poll the version
	pruning  outage // outage of that job only, such as a missing permission
	trimming outage
	lines    loglimit.Limit // limits the lines about outages and standbys
	healing  loglimit.Limit
	claims   loglimit.Limit
	writes   loglimit.Limit
}

// recordFailure records that a claim, a change or a renewal failed, and returns how long to
// wait before the next try.
func (p *Publisher) recordFailure(err error) time.Duration {
	p.stats.Change(func(s *PublisherStats) { s.Failures, s.Connected = s.Failures+1, false })
	return p.beginOutage(&p.outage, "cannot publish hot keys; retrying", err)
}

// recordRecovery records that all pending changes are written, or that another process holds
// the owner.
func (p *Publisher) recordRecovery() {
	p.stats.Change(func(s *PublisherStats) { s.Connected = true })
	p.endOutage(&p.outage, "publishing hot keys again")
}

// recordPart records the result of work that is not needed to publish hot keys; o is its outage.
// It returns err unless only this work is affected.
func (p *Publisher) recordPart(o *outage, err error) error {
	switch {
	case err == nil:
		p.endOutage(o, "all of the publisher's work succeeds again")
	case aboutCommand(err):
		p.stats.Change(func(s *PublisherStats) { s.Failures++ })
		p.beginOutage(o, "part of the publisher's work fails; hot keys are still published", err)
		return nil
	}
	return err
}

// beginOutage records a failure, logs the first of an outage, and returns how long to wait
// before the next try.
func (p *Publisher) beginOutage(o *outage, message string, err error) time.Duration {
	wait, begins := o.recordFailure(err)
	if begins {
		o.warn(&p.lines, lineRate, p.cfg.Logger, message, "owner", p.cfg.Owner)
	}
	p.showTrouble()
	return wait
}

func (p *Publisher) endOutage(o *outage, message string) {
	if !o.isOn() {
		return
	}
	if o.succeeded() {
		p.cfg.Logger.Info(message, "owner", p.cfg.Owner)
	}
	p.showTrouble()
}

// showTrouble sets Trouble in the stats.
func (p *Publisher) showTrouble() {
	var words []string
	for _, o := range []*outage{&p.outage, &p.partial, &p.pruning, &p.trimming} {
		if o.isOn() {
			words = append(words, o.err.Error())
		}
	}
	p.stats.Change(func(s *PublisherStats) { s.Trouble = strings.Join(words, "; ") })
}

// recordReport records the report at the end of a script's answer.
func (p *Publisher) recordReport(name string, r scriptReport) {
	p.untidy = p.untidy || r.untidy
	p.stats.Change(func(s *PublisherStats) { s.Healed.count(r.healed) })
	if len(r.healed) > 0 {
		p.healing.Warn(lineRate, p.cfg.Logger, "keys of the hot set in Redis held foreign values and were repaired", "owner", p.cfg.Owner, "keys", r.healed)
	}
	switch {
	case r.refused != "":
		p.stats.Change(func(s *PublisherStats) { s.Failures++ })
		p.beginOutage(&p.partial, "changes are published, but reach instances late", errors.New(name+": "+r.refused))
	case name == "change" || name == "rewrite":
		p.endOutage(&p.partial, "changes reach instances at once again")
	}
}

// healable are the keys in Redis, without the prefix of the namespace, that a publisher repairs
// if they hold foreign values. The heartbeat is not one of them, since each renewal overwrites
// it.
var healable = [...]string{"hot", "info", "version", "owners", "events", "schema", "suspects", "instances"}

// Healed counts the repairs of each key in Redis that held a foreign value: one of
// another type, or one that cannot be read.
type Healed [len(healable)]uint64

// All returns an iterator over the keys' names, without their namespace, and the counts.
func (h Healed) All() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for i, name := range healable {
			if !yield(name, h[i]) {
				return
			}
		}
	}
}

// Add adds another publisher's counts.
func (h *Healed) Add(other Healed) {
	for i, n := range other {
		h[i] += n
	}
}

func (h *Healed) count(names []string) {
	for _, name := range names {
		if i := slices.Index(healable[:], name); i >= 0 {
			h[i]++
		}
	}
}
