package middleware

import (
	"context"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// askBackend asks the request's claims that were not asked yet in one call.
func (r *request) askBackend() { r.guard.askBackend(r) }

// askBackend asks the requests' claims that were not asked yet in one call: they take
// together or not at all, except for limits in shadow mode, which deny nothing. Claims that a
// waiting line or a stock has decided on are not part of the call. If one has denied, nothing is
// asked.
func (g *Guard) askBackend(requests ...*request) {
	if !joinLines(requests) || !borrow(requests) {
		return
	}
	var (
		ctx   context.Context
		ops   []limiter.Op
		views []*limiter.Failover
	)
	for _, r := range requests {
		if r.pending.asked == len(r.pending.byBackend) {
			continue
		}
		claims := r.pending.byBackend[r.pending.asked:]
		r.trace.beforeBackend(g.opts.backend, claims)
		if ctx == nil {
			ctx = r.context()
		}
		for i := range claims {
			if c := &claims[i]; !c.decided {
				ops, views = append(ops, c.op), append(views, g.backends[c.spec.whenAway()])
			}
		}
	}
	if len(ops) == 0 {
		return
	}
	start, results := time.Now(), make([]limiter.Result, len(ops))
	err := g.failover.DoAllBy(ctx, views, ops, results)
	g.backendTimes.add(time.Since(start))
	denied := false
	for i := range ops {
		denied = denied || ops[i].Together && !results[i].Allowed && limiter.ErrorOf(err, i) == nil
	}
	next := 0
	for _, r := range requests {
		for ; r.pending.asked < len(r.pending.byBackend); r.pending.asked++ {
			if c := &r.pending.byBackend[r.pending.asked]; !c.decided {
				r.addBackendResult(c, &results[next], denied, limiter.ErrorOf(err, next))
				next++
			}
		}
	}
}

// joinLines puts the requests into the waiting lines of their claims' keys, if there are any.
// It reports whether none of the requests was denied.
func joinLines(requests []*request) bool {
	for _, r := range requests {
		for i := r.pending.asked; i < len(r.pending.byBackend); i++ {
			r.joinLine(&r.pending.byBackend[i])
			if r.denied {
				return false
			}
		}
	}
	return true
}

// addBackendResult merges the backend's result for one claim into the verdict. denied reports
// whether another claim was denied; then a claim that is Together with it has taken nothing.
func (r *request) addBackendResult(c *backendClaim, got *limiter.Result, denied bool, err error) {
	g := r.guard
	if err != nil { // the request's context has ended, or the backend does not support the limit
		*got = g.decideAlone(r.context(), c.spec, c.op)
		if g.stats.Undecided.Add(1) == 1 {
			g.opts.log.Error("the backend did not decide on a limit with scope: fleet or exact; logged once, then counted", "rule", c.rule.ID, "error", err)
		}
	}
	waits := got.Taken > 0 && got.Delay > 0 && r.sleeps()
	if waits {
		r.stand(r.backendWait(c), &c.claim, got)
	}
	c.state.record(got.Allowed && !(denied && c.op.Together && got.Taken == 0))
	if r.addResult(&c.claim, &got.Decision) && got.Taken > 0 && !waits {
		c.back = c.op
		c.back.Request = got.Return()
	}
}

// backendWait returns the wait of a request that the backend makes wait.
func (r *request) backendWait(c *backendClaim) *limiter.WaitClaim {
	w := r.waitClaim(&c.claim, limiter.WaitKey{Name: c.op.Name, Key: c.op.Key, Keep: c.op.Keep}, backendAsker{r.guard, c.spec, c.op})
	w.Remote = true
	return w
}

// joinLine puts the request into the waiting line of the claim's key, if there is one.
func (r *request) joinLine(c *backendClaim) {
	if c.op.Kind != limiter.Reserve || !r.sleeps() || c.stock != nil {
		return
	}
	w, d, joined := r.guard.lines.Join(r.context(), r.backendWait(c))
	if c.decided = joined; joined {
		c.state.record(d.Allowed)
		if w != nil {
			r.addTurn(&c.claim, w)
		}
		r.addResult(&c.claim, &d)
	}
}

// decideAlone decides on a claim that the backend did not decide on, as if the backend were
// unavailable. So a client that hangs up, or a limit that the backend does not support, is
// limited by this instance's part.
func (g *Guard) decideAlone(ctx context.Context, spec *limitSpec, op limiter.Op) limiter.Result {
	got, err := g.backends[spec.whenAway()].Alone(context.WithoutCancel(ctx), op)
	switch {
	case err == nil:
		return got
	case spec.whenAway() == rules.OutageClosed:
		return limiter.Result{Decision: rules.Decision{Reason: rules.ReasonUnavailable}}
	}
	return limiter.Result{Decision: rules.Decision{Allowed: true, Reason: rules.ReasonOpen}}
}

// backendAsker asks the backend on behalf of waiting requests, as for a [backendClaim].
type backendAsker struct {
	guard *Guard
	spec  *limitSpec
	op    limiter.Op
}

func (a backendAsker) Do(ctx context.Context, ask limiter.Request) (limiter.Result, error) {
	op := a.op
	op.Request = ask
	got, err := a.guard.backends[a.spec.whenAway()].Do(ctx, op)
	if err != nil && ask.Kind != limiter.Return {
		a.guard.stats.Undecided.Add(1)
		return a.guard.decideAlone(ctx, a.spec, op), nil
	}
	return got, err
}
