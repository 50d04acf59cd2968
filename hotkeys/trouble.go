package hotkeys

import (
	"errors"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/loglimit"
)

// troubles are what keeps a publisher from its work. Of its goroutine alone.
type troubles struct {
	outage   outage // of what must be written: the claim, changes, renewals
	partial  outage // of the stream or the channel alone: readers make up for it
	pruning  outage // of that job alone, as it lacks a right
	trimming outage
	lines    loglimit.Limit // of these, and of what is done about them
	healing  loglimit.Limit
	claims   loglimit.Limit
	writes   loglimit.Limit
}

// failed records a failure of what must be written. It returns when to try again.
func (p *Publisher) failed(err error) time.Duration {
	p.stats.failures.Add(1)
	p.stats.connected.Store(false)
	return p.begin(&p.outage, "cannot publish hot keys; trying on", err)
}

// recovered records that all that is due was written, or that it is another's to
// write.
func (p *Publisher) recovered() {
	p.stats.connected.Store(true)
	p.end(&p.outage, "publishing hot keys again")
}

// part records what became of a part of the work, which alone o is of. It returns
// err where that is about more than this part.
func (p *Publisher) part(o *outage, err error) error {
	switch {
	case err == nil:
		p.end(o, "nothing is missing any more of what is published")
	case aboutCommand(err):
		p.stats.failures.Add(1)
		p.begin(o, "a part of the publisher's work fails; hot keys are published all the same", err)
		return nil
	}
	return err
}

// begin records a failure, and logs the first of an outage.
func (p *Publisher) begin(o *outage, message string, err error) time.Duration {
	wait, begins := o.failed(err)
	if begins {
		if unlogged, ok := p.lines.Allow(lineRate, time.Now()); ok {
			o.logged = true
			p.cfg.Logger.Warn(message, "owner", p.cfg.Owner, "err", err, "unlogged", unlogged)
		}
	}
	p.showTrouble()
	return wait
}

func (p *Publisher) end(o *outage, message string) {
	if !o.isOn() {
		return
	}
	if o.succeeded() {
		p.cfg.Logger.Info(message, "owner", p.cfg.Owner)
	}
	p.showTrouble()
}

// showTrouble makes what fails now what Stats tells.
func (p *Publisher) showTrouble() {
	var words []string
	for _, o := range []*outage{&p.outage, &p.partial, &p.pruning, &p.trimming} {
		if o.isOn() {
			words = append(words, o.err.Error())
		}
	}
	text := strings.Join(words, "; ")
	p.stats.trouble.Store(&text)
}

// reported records what a script told besides its answer.
func (p *Publisher) reported(name string, r report) {
	p.untidy = p.untidy || r.untidy
	p.stats.healed.add(r.healed)
	if len(r.healed) > 0 {
		if unlogged, ok := p.healing.Allow(lineRate, time.Now()); ok {
			p.cfg.Logger.Warn("keys of the hot set in Redis held what is not ours; they were put right", "owner", p.cfg.Owner, "keys", r.healed, "unlogged", unlogged)
		}
	}
	switch {
	case r.refused != "":
		p.stats.failures.Add(1)
		p.begin(&p.partial, "changes are published, and reach instances late", errors.New(name+": "+r.refused))
	case name == "change" || name == "rewrite":
		p.end(&p.partial, "changes reach instances at once again")
	}
}
