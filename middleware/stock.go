package middleware

import (
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/fleet"
	"github.com/hotparam/hotparam/rules"
)

// newFleet makes what limits with scope: fleet need, if the backend lends permits.
func (g *Guard) newFleet() (err error) {
	lender := lenderOf(g.opts.backend)
	if lender == nil || g.opts.shadow {
		return nil
	}
	g.fleet, err = fleet.New(fleet.Config{Lender: lender, Instances: g.instances, Logger: g.opts.log})
	return err
}

// lenderOf returns what lends the permits of a backend, or nil. A wrapper, such as a
// [limiter.Failover], lends those of the backend that it wraps.
func lenderOf(b limiter.Backend) fleet.Lender {
	if lender, ok := b.(fleet.Lender); ok {
		return lender
	}
	if wrapper, ok := b.(interface{ Unwrap() limiter.Backend }); ok {
		return lenderOf(wrapper.Unwrap())
	}
	return nil
}

// FleetStats returns the counters of limits with scope: fleet, or zeros if the backend does not
// lend permits.
func (g *Guard) FleetStats() fleet.Stats {
	if g.fleet == nil {
		return fleet.Stats{}
	}
	return g.fleet.Stats()
}

// isDecidedByBackend reports whether the backend decides on a limit, or lends the permits by which
// this instance does. A backend that does not lend cannot decide by costs, which are known late:
// each instance then does for itself.
func (b *specBuilder) isDecidedByBackend(s *limitSpec) bool {
	lends := lenderOf(b.opts.backend) != nil
	return s.limit.Scope.InRedis() && (s.unit == rules.Requests || lends || b.opts.backend == nil)
}

// lends reports whether instances hold permits of the limit's hot keys. If not, each request asks
// the backend, as with scope: exact; see [fleet.FitOf].
func (s *limitSpec) lends(g *Guard) bool {
	return g.fleet != nil && g.instances() <= s.holders && (s.unit != rules.Requests || g.fleet.Running())
}

// holders returns the most instances that can hold permits of a limit in advance.
func holders(r *rule, l *rules.Limit) int {
	if l.Scope != rules.ScopeFleet {
		return 0
	}
	return fleet.FitOf(r.Rule, l).Instances
}

// mayBorrow reports whether the request takes permits that instances hold. A request that is told
// how long to wait, and does not wait here, needs a reservation, which only the backend makes.
func (r *request) mayBorrow(cl *claim) bool {
	return cl.spec.lends(r.guard) && (!cl.spec.waits() || r.sleeps())
}

// stockFor returns the stock of a hot key for requests of a class of a limit.
func (h *hotState) stockFor(g *Guard, spec *limitSpec, class int, key func() string) *fleet.Stock {
	quota := spec.quota.Load()
	for {
		s := h.stock.Load()
		if s != nil && s.name == spec.name && len(s.classes) == spec.limit.Priority.Classes() {
			stock := s.classes[class]
			if stock.Quota() != quota {
				stock.SetQuota(quota)
			}
			return stock
		}
		made := g.fleet.Stocks(fleet.StockConfig{
			Name: spec.name, Key: key(), Quota: quota, Outage: spec.whenAway(), Owing: spec.unit != rules.Requests,
		}, spec.limit.Priority.Classes())
		if h.stock.CompareAndSwap(s, &hotStock{made, spec.name}) {
			return made[class]
		}
	}
}

// hotStock is the stock of a hot key, and the name of its limit.
type hotStock struct {
	classes []*fleet.Stock // by class of priority
	name    string
}

// askStock asks the permits that this instance holds of a hot key, and reports whether that
// decides the request. If not, there may be permits in the backend.
func (r *request) askStock(cl *claim) bool {
	if !r.mayBorrow(cl) {
		return false
	}
	s := cl.state.stockFor(r.guard, cl.spec, r.classOf(cl), func() string { return r.keyText(cl.rule) })
	n := stockPermits(cl.spec)
	if version := s.Version(); s.Take(n) {
		r.addStock(cl, s, s.Allowed(), version)
		return true
	}
	if cl.spec.waits() {
		return false
	}
	d, denied := s.Shut(n)
	if denied {
		r.addStock(cl, s, d, 0)
	}
	return denied
}

// stockPermits returns the permits that a request takes of a stock: none, if its cost is known
// at its end.
func stockPermits(spec *limitSpec) int64 {
	if spec.unit != rules.Requests {
		return 0
	}
	return 1
}

// addStock merges the decision of a stock into the verdict.
func (r *request) addStock(cl *claim, s *fleet.Stock, d rules.Decision, version int64) {
	cl.state.record(d.Allowed)
	if r.addResult(cl, &d) {
		r.grants.list = append(r.grants.list, grant{stock: s, state: cl.state, n: stockPermits(cl.spec), mark: version})
	}
}

// borrow makes the claims that found no permits held here wait until the backend lends some, or
// stand in line for them. It reports whether none of the requests was denied.
func borrow(requests []*request) bool {
	for _, r := range requests {
		for i := r.pending.asked; i < len(r.pending.byBackend); i++ {
			c := &r.pending.byBackend[i]
			if c.stock == nil || c.decided {
				continue
			}
			c.decided = true
			if c.spec.waits() {
				r.queue(c)
			} else {
				version := c.stock.Version()
				r.addStock(&c.claim, c.stock, c.stock.Borrow(r.context(), stockPermits(c.spec)), version)
			}
			if r.verdict.denied {
				return false
			}
		}
	}
	return true
}

// queue puts the request into the line of its stock.
func (r *request) queue(c *backendClaim) {
	w, d := c.stock.Queue(stockPermits(c.spec), r.maxWait(c.spec.limit.Wait))
	c.state.record(d.Allowed)
	if w != nil {
		r.addTurn(&c.claim, w)
	}
	r.addResult(&c.claim, &d)
}
