package middleware

import (
	"context"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/limiter"
)

// exactClaim is a claim on a limit that the backend decides, for all instances.
type exactClaim struct {
	claim
	op     limiter.Op
	back   limiter.Op // gives back what was taken; N is 0 if nothing was
	joined bool       // a waiting line has decided on it, and asks
}

// askBackend asks all of the request's claims that were not asked yet in one call, or in one
// for each kind of when_redis_is_away that the limits have.
func (r *request) askBackend() {
	claims := r.pending.exact[r.pending.asked:]
	if len(claims) == 0 {
		return
	}
	r.pending.asked += len(claims)
	if r.trace != nil {
		r.trace.beforeBackend(r.guard.opts.backend, claims)
	}
	start := time.Now()
	defer func() { r.guard.exactTimes.add(time.Since(start)) }()
	for i := range claims {
		r.joinLine(&claims[i])
	}
	ops := make([]limiter.Op, 0, len(claims))
	results := make([]limiter.Result, len(claims))
	for _, away := range aways {
		ops = ops[:0]
		for i := range claims {
			if claims[i].spec.whenAway() == away && !claims[i].joined {
				ops = append(ops, claims[i].op)
			}
		}
		if len(ops) == 0 {
			continue
		}
		got := results[:len(ops)]
		err := r.guard.backends[away].DoAll(r.context(), ops, got)
		at := 0
		for i := range claims {
			if c := &claims[i]; c.spec.whenAway() == away && !c.joined {
				r.addExact(c, &got[at], limiter.ErrorOf(err, at))
				at++
			}
		}
	}
}

// addExact merges the backend's result for one claim into the verdict.
func (r *request) addExact(c *exactClaim, got *limiter.Result, err error) {
	g := r.guard
	if err != nil { // the request's context has ended, or the backend does not support the limit
		*got = g.decideAlone(r.context(), c.spec, c.op)
		if g.undecided.Add(1) == 1 {
			g.opts.log.Error("the backend did not decide on a limit with scope: exact; logged once, then counted", "rule", c.rule.ID, "error", err)
		}
	}
	waits := got.Delay > 0 && r.sleeps()
	if waits {
		r.stand(r.exactWait(c), &c.claim, got)
	}
	c.state.record(got.Allowed)
	if r.addResult(&c.claim, &got.Decision) && got.Taken > 0 && !waits {
		c.back = c.op
		c.back.Ask = got.Return()
	}
}

// exactWait returns what a request waits for that the backend makes wait.
func (r *request) exactWait(c *exactClaim) *limiter.WaitClaim {
	w := r.waitClaim(&c.claim, limiter.WaitKey{Name: c.op.Name, Key: c.op.Key, Keep: c.op.Keep}, exactAsker{r.guard, c.spec, c.op})
	w.Remote = true
	return w
}

// joinLine puts the request into the waiting line of the claim's key, if there is one.
func (r *request) joinLine(c *exactClaim) {
	if c.op.Kind != limiter.Reserve || !r.sleeps() {
		return
	}
	w, d, joined := r.guard.lines.Join(r.context(), r.exactWait(c))
	if c.joined = joined; joined {
		c.state.record(d.Allowed)
		r.addTurn(&c.claim, w)
		r.addResult(&c.claim, &d)
	}
}

// decideAlone decides on a claim that the backend did not, as if it were unavailable: so a
// client that hangs up, or a limit that the backend does not support, is limited by this
// instance's part.
func (g *Guard) decideAlone(ctx context.Context, spec *limitSpec, op limiter.Op) limiter.Result {
	got, err := g.backends[spec.whenAway()].Alone(context.WithoutCancel(ctx), op)
	switch {
	case err == nil:
		return got
	case spec.whenAway() == hotparam.AwayClosed:
		return limiter.Result{Decision: hotparam.Decision{Reason: hotparam.ReasonAway}}
	}
	return limiter.Result{Decision: hotparam.Decision{Allowed: true, Reason: hotparam.ReasonOpen}}
}

// giveBackExact gives back what was taken from the backend. The request's context may have
// ended, so the backend's own deadline bounds the call.
func (r *request) giveBackExact() {
	for _, away := range aways {
		var ops []limiter.Op
		for i := range r.pending.exact {
			c := &r.pending.exact[i]
			if c.back.N == 0 || c.spec.whenAway() != away {
				continue
			}
			ops = append(ops, c.back)
			c.state.revoke()
		}
		if len(ops) > 0 { // if the backend is unavailable, what was taken stays taken
			_ = r.guard.backends[away].DoAll(context.Background(), ops, make([]limiter.Result, len(ops)))
		}
	}
}
