package middleware

import "github.com/hotparam/hotparam/rules"

// Hooks are functions that are called for each request, in the request's goroutine. A nil
// hook is not called. Hooks must be quick. A panic in a hook is counted in [Stats].Panics, and
// has no other effect. For a request of a hot key whose rule has on_hot, After is called with
// [rules.ReasonShared], and again with the limits' decision if the handler has to answer it.
type Hooks struct {
	Before func(Request)                 // called before anything is counted
	After  func(Request, rules.Decision) // called after the decision, and the wait if there is one
	Denied func(Request, rules.Decision) // called after After, for a refused request
	Near   func(Request, rules.Decision) // called after After, for a request that leaves less than a tenth of its limit
}

func (g *Guard) before(req *Request) {
	if g.opts.hooked {
		req.Caller = g.callerOf(req)
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
