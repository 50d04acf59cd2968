package middleware

import (
	"context"

	"github.com/hotparam/hotparam"
)

// Enter is [Guard.Check] for what is not HTTP: an RPC method, a job, a cache.
// Resource is what rules name as their route, and what keys begin with; it
// should come from a small set. Where a rule has the request wait, ctx ends the wait:
// it is then refused. If ctx has ended before, the request passes, and nothing is
// counted.
//
//	d := guard.Enter(ctx, "SearchService/Find", hotparam.Param{Name: "q", Value: q})
//	if !d.Allowed {
//		return status.Error(codes.ResourceExhausted, "too many requests")
//	}
func (g *Guard) Enter(ctx context.Context, resource string, params ...hotparam.Param) (d hotparam.Decision) {
	g.enter(ctx, resource, params, false, &d)
	return d
}

// EnterCost is Enter where rules count what a request costs, or have concurrency, as
// [Guard.Begin] is Check.
func (g *Guard) EnterCost(ctx context.Context, resource string, params ...hotparam.Param) (d hotparam.Decision, t *Ticket) {
	return d, g.enter(ctx, resource, params, true, &d).ticket
}

func (g *Guard) enter(ctx context.Context, resource string, params []hotparam.Param, holds bool, d *hotparam.Decision) (o outcome) {
	defer g.failOpen(d)
	if ctx.Err() != nil {
		*d = hotparam.Decision{Allowed: true, Reason: hotparam.ReasonOpen}
		return o
	}
	req := Request{Context: ctx, Pattern: resource}
	g.before(&req)
	s := g.begin()
	s.req, s.route, s.holds = req, g.rules.Load().ofResource(resource), holds
	s.loaded = true // there is no query to load
	for _, p := range params {
		s.params.Add(p)
	}
	s.params.Sort()
	g.decide(s, d)
	o = g.settle(s, d)
	g.after(&req, d)
	return o
}

// IsHot tells whether a key is hot by some rule, for callers that treat hot
// keys in a way of their own, such as by caching them in the process. It
// neither counts nor takes a token. The key is a canonical text, as
// [hotparam.Text] makes it.
func (g *Guard) IsHot(key string) (hot bool) {
	defer func() {
		if recover() != nil {
			g.panics.Add(1)
			hot = false
		}
	}()
	s := g.begin()
	defer g.end(s)
	set := g.rules.Load()
	for i := range set.rules {
		r := &set.rules[i]
		if len(r.Hot) == 0 {
			continue
		}
		s.key = append(append(s.key[:0], r.prefix...), key...)
		s.key = g.fit(s.key, len(r.prefix))
		if g.hot.Lookup(hotparam.Hash(s.key), s.key) != nil {
			return true
		}
	}
	return false
}
