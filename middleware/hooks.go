package middleware

import "github.com/hotparam/hotparam"

// Hooks are called for each request, in its own goroutine, unless they are nil. They must
// be quick. A panic in a hook is counted in [Stats].Panics, and changes nothing.
type Hooks struct {
	Before func(Request)                    // before anything is counted
	After  func(Request, hotparam.Decision) // once it is decided, and has waited
	Denied func(Request, hotparam.Decision) // after After, for one that is refused
	Near   func(Request, hotparam.Decision) // after After, for one that leaves less than a tenth of its limit
}

func (g *Guard) before(req *Request) {
	if g.opts.hooks.Before != nil {
		g.callBefore(*req)
	}
}

func (g *Guard) after(req *Request, d *hotparam.Decision) {
	if h := &g.opts.hooks; h.After != nil || h.Denied != nil || h.Near != nil {
		g.callAfter(*req, *d)
	}
}

// callBefore has a copy of the request: the caller's stays where it is cheap.
func (g *Guard) callBefore(req Request) { g.callHook(func() { g.opts.hooks.Before(req) }) }

func (g *Guard) callAfter(req Request, d hotparam.Decision) {
	h := &g.opts.hooks
	if h.After != nil {
		g.callHook(func() { h.After(req, d) })
	}
	if h.Denied != nil && !d.Allowed {
		g.callHook(func() { h.Denied(req, d) })
	}
	if h.Near != nil && d.Reason == hotparam.ReasonWithin && d.Remaining < d.Limit/10 {
		g.callHook(func() { h.Near(req, d) })
	}
}

// callHook calls a hook, and counts a panic of it.
func (g *Guard) callHook(f func()) {
	defer func() {
		if recover() != nil {
			g.panics.Add(1)
		}
	}()
	f()
}
