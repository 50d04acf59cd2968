package middleware

import "github.com/hotparam/hotparam/rules"

func (g *Guard) before(req *Request) {
	if g.opts.hooked {
		req.Caller = g.opts.callerOf(req)
		g.callBefore(*req)
	}
}

func (g *Guard) after(req *Request, d *rules.Decision) {
	if g.opts.hooked {
		g.callAfter(*req, *d)
	}
}

// callBefore takes a copy of the request, so that the caller's does not escape to the heap.
func (g *Guard) callBefore(req Request) {
	if f := g.opts.hooks.Before; f != nil {
		g.callHook(func() { f(req) })
	}
}

func (g *Guard) callAfter(req Request, d rules.Decision) {
	h := &g.opts.hooks
	if h.After != nil {
		g.callHook(func() { h.After(req, d) })
	}
	if h.Denied != nil && !d.Allowed {
		g.callHook(func() { h.Denied(req, d) })
	}
	if h.Near != nil && d.Reason == rules.ReasonWithin && d.Remaining < d.Limit/10 {
		g.callHook(func() { h.Near(req, d) })
	}
}

// callHook calls a hook, and counts its panic.
func (g *Guard) callHook(f func()) {
	defer g.countPanic()
	f()
}
