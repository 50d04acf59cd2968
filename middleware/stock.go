package middleware

import (
	"github.com/hotparam/hotparam/limiter/fleet"
	"github.com/hotparam/hotparam/rules"
)

// askStock asks the permits that this instance holds of a hot key, and reports whether that
// decides the request. If not, there may be permits in the backend.
func (r *request) askStock(cl *claim) bool {
	if !r.mayBorrow(cl) {
		return false
	}
	s := cl.state.stockFor(r.guard.fleet, cl.spec, r.classOf(cl), func() string { return r.keyText(cl.rule) })
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
			if r.denied {
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
