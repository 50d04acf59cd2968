package middleware

import (
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Exchange is a request of a hot key that may be answered together with others.
type Exchange struct {
	// Request is the request that CountStep has allowed with [rules.ReasonShared].
	Request Request
	// HTTP identifies the answer. The request that a run's handler gets is made from it.
	HTTP *http.Request
	// Header receives the headers of the answer.
	Header http.Header
	// Lead returns the handler for a run; see [Leader].
	Lead func() http.Handler

	run runCheck
}

// Share answers a request together with others. d is the decision of CountStep. If the outcome is
// Alone, the caller asks the limits by LimitStep. If it is Refused, Share sets *d to the refusal.
// [Guard.Handler] does all this for net/http.
func (g *Guard) Share(x *Exchange, d *rules.Decision) Shared {
	key, ok := d.From.(*sharedKey)
	if !ok || !key.rule.sharesRequest(&x.Request) {
		return Shared{}
	}
	return g.share(key, x, d, func(step Request) (d rules.Decision, t *Ticket) {
		req := x.Request
		req.Steps, req.NoWait, req.run = step.Steps, req.NoWait || step.NoWait, step.run
		return d, g.check(&req, true, &d)
	})
}

// share implements Share. limit asks the limits of the request, in the step that its argument has.
func (g *Guard) share(key *sharedKey, x *Exchange, d *rules.Decision, limit func(Request) (rules.Decision, *Ticket)) Shared {
	shared := g.ask(key, x, func(refresh bool) (http.Handler, bool) {
		next := x.Lead()
		if next == nil {
			return withheld, true
		}
		x.run = runCheck{made: true, refresh: refresh}
		refusal, ticket := limit(Request{Steps: LimitStep, NoWait: refresh, run: &x.run})
		if !refusal.Allowed {
			if !refresh {
				*d = refusal
			}
			return nil, false
		}
		return &run{guard: g, ticket: ticket, next: next}, true
	})
	key.state.recordOutcome(shared.Outcome, shared.Reason)
	if shared.Outcome == Refused && !x.run.made { // with the request that led the run
		key.state.record(false)
	}
	g.countRun(key.rule.decisions, &x.run, shared.Outcome)
	return shared
}

// ask asks the rule's sharing. If that panics, the request is handled alone.
func (g *Guard) ask(key *sharedKey, x *Exchange, admit func(refresh bool) (http.Handler, bool)) (shared Shared) {
	defer func() {
		if recover() != nil {
			g.stats.Panics.Add(1)
			shared = Shared{}
		}
	}()
	return key.rule.sharing.Share(x.HTTP, key.text, x.Header, admit)
}

// countRun counts a request by the decision on its run, or as gone, instead of as shared.
func (g *Guard) countRun(decisions *decisionCounts, run *runCheck, outcome Outcome) {
	switch {
	case outcome == Left && !run.made:
		run.decisions = []*spreadCount{&decisions.of[decisionGone]}
	case !run.made || outcome != Led && outcome != Refused && outcome != Left: // or LimitStep follows
		return
	}
	shard := rand.Uint32()
	decisions.asked.addOne(shard)
	for _, c := range run.decisions {
		c.addOne(shard)
	}
	g.stats.Shadowed.Add(run.shadowed)
}

// rememberedFor is a time after which no answer to requests of a key that has cooled is kept.
const rememberedFor = 12 * time.Minute

// remembersAnswers reports whether some instance may have answers in memory to a target with this
// escaped path. A request that changes something invalidates them, whatever its method: the path
// alone decides, since the rules of GET requests there may differ.
func (g *Guard) remembersAnswers(path string) bool {
	last := g.lastHot.Load()
	return last > 0 && (g.someHot.Load() || time.Since(time.Unix(0, last)) < rememberedFor) && g.rules.Load().sharesPath(path)
}

// Changed drops the answers to a target, since a request whose method is not safe has ended there,
// unless its status is a failure (RFC 9111, section 4.4). A status of 0 means that none was
// written, or that it is not known. path is escaped, and query is raw. [Guard.Handler] calls it for
// its requests.
func (g *Guard) Changed(status int, host, path, query string) {
	if status < http.StatusBadRequest && g.remembersAnswers(path) {
		defer g.countPanic()
		g.opts.sharer.Invalidate(host, path, query)
	}
}

// IsSafe reports whether requests of the method change nothing (RFC 9110, section 9.2.1).
func IsSafe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}
