package middleware

import (
	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/collector"
)

// checkPlain is check for the commonest request there is, in half the time: its route
// has one rule, which makes one key of the query's parameters, and none of them needs
// decoding. The key is built on the stack, and no pooled request is touched unless the
// key is hot. If done is false it is another request, and nothing was done.
func (g *Guard) checkPlain(route *route, in *Request, holds bool, d *hotparam.Decision) (o outcome, done bool) {
	c := route.plain
	var buf [128]byte
	if size := len(c.head) + len(in.Query); size > len(buf) || size-len(c.prefix) > collector.AlwaysFits {
		return o, false
	}
	key, n, hidden, ok := hotparam.AppendPlain(append(buf[:0], c.head...), in.Query, c.By.Names, &route.set.Secrets)
	if !ok {
		return o, false
	}
	if hidden > 0 {
		g.withheld.add(hidden)
	}
	d.Allowed = true
	if n == 0 {
		if !c.allowsBare() {
			return o, true
		}
		key = key[:len(key)-1]
	}
	hash := hotparam.Hash(key)
	entry := g.hot.Lookup(hash, key) // while what Add needs is on its way from memory
	g.counts.Add(hash, key, 1)
	if entry != nil {
		r := g.newRequest(in, route, holds)
		r.key = append(r.key[:0], key...)
		r.limitHotKey(claim{rule: c, spec: c.spec}, entry)
		o = r.finish(d)
	}
	return o, true
}

// isPlain reports whether checkPlain can take the requests of a route with this rule
// alone.
func (c *candidate) isPlain() bool {
	return !c.picks && !c.Ignore && c.head != nil && c.values == nil && c.except == nil && len(c.Hot) > 0 &&
		c.Count == hotparam.Requests && (c.By.Kind == hotparam.ByAll || c.By.Kind == hotparam.ByNames)
}
