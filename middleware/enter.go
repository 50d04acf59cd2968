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
	s := g.begin()
	s.route = g.rules.ofResource(resource)
	s.loaded = true // there is no query to load
	for _, p := range params {
		s.params.Add(p)
	}
	s.params.Sort()
	g.decide(s, &d)
	g.end(s)
	return d
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
		if r.Hot == nil {
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
