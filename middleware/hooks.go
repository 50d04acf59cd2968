package middleware

import "github.com/hotparam/hotparam"

// Hooks are called for each request, in its own goroutine; nil ones are not. They must
// be quick. One that panics is counted in [Stats].Panics, and changes nothing.
type Hooks struct {
	Before func(Request)                    // before anything is counted
	After  func(Request, hotparam.Decision) // once it is decided, and has waited
	Denied func(Request, hotparam.Decision) // after After, for one that is refused
	Near   func(Request, hotparam.Decision) // after After, for one that leaves less than a tenth of its limit
}

func (g *Guard) before(req *Request) {
	if g.opts.hooks.Before != nil {
		g.tellBefore(*req)
	}
}

func (g *Guard) after(req *Request, d *hotparam.Decision) {
	if h := &g.opts.hooks; h.After != nil || h.Denied != nil || h.Near != nil {
		g.tellAfter(*req, *d)
	}
}

// tellBefore has a copy of the request: the caller's stays where it is cheap.
func (g *Guard) tellBefore(req Request) { g.hook(func() { g.opts.hooks.Before(req) }) }

func (g *Guard) tellAfter(req Request, d hotparam.Decision) {
	h := &g.opts.hooks
	if h.After != nil {
		g.hook(func() { h.After(req, d) })
	}
	if h.Denied != nil && !d.Allowed {
		g.hook(func() { h.Denied(req, d) })
	}
	if h.Near != nil && d.Reason == hotparam.ReasonWithin && d.Remaining < d.Limit/10 {
		g.hook(func() { h.Near(req, d) })
	}
}

func (g *Guard) hook(f func()) {
	defer func() {
		if recover() != nil {
			g.panics.Add(1)
		}
	}()
	f()
}
