package middleware

import (
	"context"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/limiter"
)

// exact is what is asked of who decides for all instances.
type exact struct {
	*candidate
	terms *terms
	held  *held // whose the key is; nil: no hot key's
	op    limiter.Op
	took  limiter.Op // gives it back; N is 0 where nothing was taken
}

// Run has the backend of limits with scope: exact probed while it is away; where it does
// not run, requests do that, and wait for it. It blocks until the context ends, and
// returns nil.
func (g *Guard) Run(ctx context.Context) error {
	if g.failover == nil {
		<-ctx.Done()
		return nil
	}
	return g.failover.Run(ctx)
}

// BackendStats tells how who decides on limits with scope: exact fares; zero where
// there is none.
func (g *Guard) BackendStats() limiter.FailoverStats {
	if g.failover == nil {
		return limiter.FailoverStats{}
	}
	return g.failover.Stats()
}

// exacts ask the backend, each with what is done while it is away.
type exacts map[hotparam.Away]*limiter.Failover

// newExacts puts a memory of denials, a deadline and circuit breakers around the backend.
func (g *Guard) newExacts() error {
	if g.opts.backend == nil {
		return nil
	}
	given, ok := g.opts.backend.(*limiter.Failover)
	if !ok {
		local, err := limiter.NewMemory(limiter.MemoryConfig{MaxKeys: g.opts.maxKeys, Clock: g.opts.clock, Algorithms: g.opts.algorithms})
		if err != nil {
			return err
		}
		g.cached, err = limiter.NewCached(g.opts.backend, limiter.CachedConfig{Clock: g.opts.clock})
		if err != nil {
			return err
		}
		given, err = limiter.NewFailover(g.cached, limiter.FailoverConfig{Local: local, Instances: g.instances, Logger: g.opts.log})
		if err != nil {
			return err
		}
	}
	g.failover = given
	g.exacts = make(exacts)
	for _, away := range aways {
		g.exacts[away] = g.failover.With(away)
	}
	return nil
}

// away is what the limit says is done while the backend is away.
func (t *terms) away() hotparam.Away {
	if t.limit.Away == "" {
		return hotparam.AwayLocal
	}
	return t.limit.Away
}

var aways = [...]hotparam.Away{hotparam.AwayLocal, hotparam.AwayOpen, hotparam.AwayClosed}

// askExact asks for all of a request at once, or, where limits differ in what is done
// while the backend is away, for those of each kind.
func (g *Guard) askExact(s *scratch, d *hotparam.Decision) {
	ops := make([]limiter.Op, 0, len(s.exact))
	results := make([]limiter.Result, len(s.exact))
	for _, away := range aways {
		ops = ops[:0]
		for i := range s.exact {
			if s.exact[i].terms.away() == away {
				ops = append(ops, s.exact[i].op)
			}
		}
		if len(ops) == 0 {
			continue
		}
		got := results[:len(ops)]
		err := g.exacts[away].DoAll(s.req.context(), ops, got)
		at := 0
		for i := range s.exact {
			if x := &s.exact[i]; x.terms.away() == away {
				g.judgeExact(s, x, &got[at], limiter.ErrorOf(err, at), d)
				at++
			}
		}
	}
}

func (g *Guard) judgeExact(s *scratch, x *exact, got *limiter.Result, err error, d *hotparam.Decision) {
	if err != nil { // the request's context has ended, or the backend cannot do that
		*got = g.decideAlone(s, x)
		if g.undecided.Add(1) == 1 {
			g.opts.log.Error("the backend did not decide on a limit with scope: exact; told once, then counted", "rule", x.ID, "error", err)
		}
	}
	x.held.note(got.Allowed)
	if g.judge(s, x.candidate, x.terms, d, &got.Decision) && got.Taken > 0 {
		x.took = x.op
		x.took.Ask = got.Return()
	}
}

// decideAlone decides what the backend does not, as if it were away: a client that hangs
// up, or a limit that the backend does not know, is held to this instance's part.
func (g *Guard) decideAlone(s *scratch, x *exact) limiter.Result {
	got, err := g.exacts[x.terms.away()].Alone(context.WithoutCancel(s.req.context()), x.op)
	switch {
	case err == nil:
		return got
	case x.terms.away() == hotparam.AwayClosed:
		return limiter.Result{Decision: hotparam.Decision{Reason: hotparam.ReasonAway}}
	}
	return limiter.Result{Decision: hotparam.Decision{Allowed: true, Reason: hotparam.ReasonOpen}}
}

// returnExact gives back what was taken of others. The request may be gone: what
// bounds the call is the deadline of the backend's own.
func (g *Guard) returnExact(list []exact) {
	for _, away := range aways {
		var ops []limiter.Op
		for i := range list {
			x := &list[i]
			if x.took.N == 0 || x.terms.away() != away {
				continue
			}
			ops = append(ops, x.took)
			if x.held != nil {
				x.held.passed.Add(-1)
				x.held.refused.Add(1)
			}
		}
		if len(ops) > 0 { // an error: it is away, and what was taken stays so
			_ = g.exacts[away].DoAll(context.Background(), ops, make([]limiter.Result, len(ops)))
		}
	}
}
