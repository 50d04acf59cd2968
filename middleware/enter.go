package middleware

import (
	"context"

	"github.com/hotparam/hotparam"
)

// Enter is [Guard.Check] for what is not HTTP: an RPC method, a job, a cache.
// Resource is what rules name as their route, and what keys begin with; it
// should come from a small set. Rules that limit by waiting are not built, so
// ctx only ends the call before it begins: then nothing is counted.
//
//	d := guard.Enter(ctx, "SearchService/Find", hotparam.Param{Name: "q", Value: q})
//	if !d.Allowed {
//		return status.Error(codes.ResourceExhausted, "too many requests")
//	}
func (g *Guard) Enter(ctx context.Context, resource string, params ...hotparam.Param) (d hotparam.Decision) {
	defer g.failOpen(&d)
	if ctx.Err() != nil {
		return hotparam.Decision{Allowed: true, Reason: hotparam.ReasonOpen}
	}
	g.enter(g.rules.ofResource(resource), params, nil, &d)
	return d
}

// EnterCost is Enter where rules count what a request costs, as [Guard.Begin] is
// Check.
func (g *Guard) EnterCost(ctx context.Context, resource string, params ...hotparam.Param) (d hotparam.Decision, t *Ticket) {
	defer g.failOpen(&d)
	if ctx.Err() != nil {
		return hotparam.Decision{Allowed: true, Reason: hotparam.ReasonOpen}, nil
	}
	r := g.rules.ofResource(resource)
	if !r.costs {
		g.enter(r, params, nil, &d)
		return d, nil
	}
	ticket := g.tickets.Get().(*Ticket)
	g.enter(r, params, ticket, &d)
	return d, ticket.unless(!d.Allowed)
}

func (g *Guard) enter(r *route, params []hotparam.Param, t *Ticket, d *hotparam.Decision) {
	s := g.begin()
	s.route, s.ticket = r, t
	s.loaded = true // there is no query to load
	for _, p := range params {
		s.params.Add(p)
	}
	s.params.Sort()
	g.decide(s, d)
	g.end(s)
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
	for i := range g.rules.rules {
		r := &g.rules.rules[i]
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
