package middleware

import (
	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/collector"
)

// plain is Check for the commonest request there is, in half the time: its route
// has one rule, which makes one key of the query's parameters, and none of them
// needs decoding. The key is built on the stack, and what the rest of the guard
// works with is not touched unless the key is hot. False: it is another request,
// and nothing was done.
func (g *Guard) plain(r *route, req *Request, holds bool, d *hotparam.Decision) (o outcome, done bool) {
	c := r.plain
	var buf [128]byte
	if size := len(c.head) + len(req.Query); size > len(buf) || size-len(c.prefix) > collector.AlwaysFits {
		return o, false
	}
	key, n, hidden, ok := hotparam.AppendPlain(append(buf[:0], c.head...), req.Query, c.By.Names, &r.set.Secrets)
	if !ok {
		return o, false
	}
	if hidden > 0 {
		g.withheld.add(hidden)
	}
	d.Allowed = true
	if n == 0 {
		if !c.bare() {
			return o, true
		}
		key = key[:len(key)-1]
	}
	hash := hotparam.Hash(key)
	entry := g.hot.Lookup(hash, key) // while what Add needs is on its way from memory
	g.counts.Add(hash, key, 1)
	if entry != nil {
		s := g.begin()
		s.req, s.route, s.holds = *req, r, holds
		s.key = append(s.key[:0], key...)
		g.useHot(s, c, c.terms, entry, d)
		o = g.settle(s, d)
	}
	return o, true
}

// isPlain tells whether plain can take the requests of a route with this rule
// alone.
func (c *candidate) isPlain() bool {
	return !c.picks && !c.Ignore && c.head != nil && c.values == nil && c.except == nil && len(c.Hot) > 0 &&
		c.Count == hotparam.Requests && (c.By.Kind == hotparam.ByAll || c.By.Kind == hotparam.ByNames)
}
