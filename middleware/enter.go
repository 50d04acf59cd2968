package middleware

import (
	"context"

	"github.com/hotparam/hotparam/internal/keytext"
	"github.com/hotparam/hotparam/rules"
)

// Enter is [Guard.Check] for requests that are not HTTP, such as RPCs, jobs or look-ups in
// a cache. resource takes the place of the route in rules and keys, and should be one of a
// small set. If rules may name an RPC's metadata (header:), its peer's address (addr:) or
// fields of its message (rpc:), use [Guard.Begin] with a [Request] whose Pattern is the
// resource; the keys are the same. If ctx ends while the request waits, it is refused. If ctx
// has already ended, the request passes and is not counted.
//
//	d := guard.Enter(ctx, "SearchService/Find", rules.Param{Name: "q", Value: q})
//	if !d.Allowed {
//		return status.Error(codes.ResourceExhausted, "too many requests")
//	}
func (g *Guard) Enter(ctx context.Context, resource string, params ...rules.Param) (d rules.Decision) {
	g.enter(ctx, resource, params, false, &d)
	return d
}

// EnterCost is Enter for rules that count what a request costs, or that have concurrency, just
// as [Guard.Begin] is Check for them.
func (g *Guard) EnterCost(ctx context.Context, resource string, params ...rules.Param) (d rules.Decision, t *Ticket) {
	return d, g.enter(ctx, resource, params, true, &d)
}

func (g *Guard) enter(ctx context.Context, resource string, params []rules.Param, holds bool, d *rules.Decision) (t *Ticket) {
	defer g.failOpen(d)
	if ctx.Err() != nil {
		*d = rules.Decision{Allowed: true, Reason: rules.ReasonOpen}
		return nil
	}
	in := Request{Context: ctx, Pattern: resource}
	g.before(&in)
	r := g.newRequest(&in, g.rules.Load().ofResource(resource), holds)
	r.setParams(params)
	r.applyRules()
	t = r.finish(d)
	g.after(&in, d)
	return t
}

// setParams sets the request's parameters, which replace those of a query.
func (r *request) setParams(params []rules.Param) {
	r.params.loaded = true // there is no query to parse
	for _, p := range params {
		r.params.list.Add(p)
	}
	r.sortParams(&r.params.list)
}

// ReadsMessage reports whether a rule for the resource names fields of the message (rpc:). If
// so, a stream of an RPC begins with its first message, and otherwise when it is opened.
func (g *Guard) ReadsMessage(resource string) bool {
	return g.rules.Load().ofResource(resource).messages
}

// IsHot reports whether a key is hot by any rule. It is for callers that treat hot keys
// specially, such as with a cache in the process. It neither counts nor takes a token.
// key is a canonical text, as [rules.Text] returns it.
func (g *Guard) IsHot(key string) bool {
	defer g.countPanic()
	r := g.newRequest(&Request{}, nil, false) // for its buffer
	defer r.recycle()
	set := g.rules.Load()
	for i := range set.rules {
		rule := &set.rules[i]
		if len(rule.Hot) == 0 {
			continue
		}
		r.key = append(r.key[:0], rule.prefix...)
		if set.redaction == nil {
			r.key = append(r.key, key...)
		} else {
			r.key = keytext.AppendCanonical(r.key, rule.Rule, key, &r.params.list, r.redactorOf(set))
		}
		r.key = g.fitKey(r.key, len(rule.prefix))
		if g.hot.Lookup(rules.Hash(r.key), r.key) != nil {
			return true
		}
	}
	return false
}
