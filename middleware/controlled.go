package middleware

import (
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// beginControls prepares for the keys of a rule.
func (r *request) beginControls(c *candidate, all *controls) {
	r.controlled.controls = all.forRule(c.ID)
	if r.controlled.controls == nil {
		return
	}
	x := &r.controlled
	x.blocked, x.allowed, x.texts, x.keys, x.owed = false, false, x.texts[:0], x.keys[:0], 0
	if r.ticket != nil {
		x.owed = len(r.ticket.owed)
	}
}

// useControlledKey implements useKey for a rule with controls. endControls asks the key's limit.
func (r *request) useControlledKey(c *candidate) {
	cl := claim{rule: c, spec: c.spec}
	var found *exception
	if c.except != nil {
		found = r.findException(c) // the exception is that of the whole key
	}
	whole := r.shortenKey(c)
	cl.hash = rules.Hash(r.key)
	x := &r.controlled
	key := controlledKey{hash: cl.hash, action: x.controls.actions[string(r.key)]}
	switch {
	case key.action != "": // the control precedes the exception
	case found == nil:
	case found.Action == rules.Allow:
		if r.trace != nil {
			r.trace.addExcepted(c, r.key, rules.Allow)
		}
		return
	case found.Action == rules.Block:
		key.denied = true
	default:
		cl.spec = found.spec
	}
	x.blocked = x.blocked || key.action == published.ControlBlock
	x.allowed = x.allowed || key.action == published.ControlAllow
	if !key.denied {
		r.countKey(&cl, whole)
	}
	x.texts = append(x.texts, r.key...)
	key.spec, key.to = cl.spec, len(x.texts)
	x.keys = append(x.keys, key)
}

// endControls decides on the keys of a rule with controls.
func (r *request) endControls(c *candidate) {
	x := &r.controlled
	x.controls = nil
	if r.trace != nil {
		r.traceControls(c)
	}
	if x.blocked && !r.asks {
		r.postponeRefusal()
		return
	}
	if x.blocked {
		r.recordBlocked(c)
		r.deny(&claim{rule: c, spec: c.spec}, &rules.Decision{Reason: rules.ReasonBlocked, Rule: c.ID})
		return
	}
	if x.allowed && r.ticket != nil {
		for i := range r.ticket.owed[x.owed:] {
			r.ticket.owed[x.owed+i].free = true
		}
	}
	from := 0
	for i := range x.keys {
		key := &x.keys[i]
		r.key = append(r.key[:0], x.texts[from:key.to]...)
		from = key.to
		switch {
		case x.allowed:
			r.passKey(claim{rule: c, spec: key.spec, hash: key.hash})
		case key.denied && !r.asks:
			r.postponeRefusal()
		case key.denied:
			r.addDenial(&claim{rule: c, spec: c.spec}, &rules.Decision{Reason: rules.ReasonBlocked, Rule: c.ID})
		default:
			r.limitCountedKey(&claim{rule: c, spec: key.spec, hash: key.hash})
			if r.trace != nil {
				r.trace.setControl(key.action)
			}
		}
	}
}

// recordBlocked records a request that a control refuses, for the keys that are hot.
func (r *request) recordBlocked(c *candidate) {
	from := 0
	for i := range r.controlled.keys {
		key := &r.controlled.keys[i]
		if hot := r.guard.hot.Lookup(key.hash, r.controlled.texts[from:key.to]); hot != nil && len(c.Hot) > 0 {
			hot.Payload.record(false)
		}
		from = key.to
	}
}

// traceControls traces the keys of a rule with controls that limitCountedKey does not trace.
func (r *request) traceControls(c *candidate) {
	x, from := &r.controlled, 0
	for i := range x.keys {
		key := &x.keys[i]
		text := x.texts[from:key.to]
		from = key.to
		except := rules.Action(0)
		switch {
		case key.denied:
			except = rules.Block
		case !x.blocked && !x.allowed:
			continue
		}
		r.trace.addControlled(c, text, key.action, except, r.guard.hot.Lookup(key.hash, text))
	}
}

// passKey records a request that a control lets pass, if the key is hot.
func (r *request) passKey(cl claim) {
	if len(cl.rule.Hot) == 0 {
		return
	}
	hot := r.guard.hot.Lookup(cl.hash, r.key)
	if hot == nil {
		return
	}
	if r.counts {
		r.sampleOrigin(&cl, hot)
	}
	if r.asks {
		hot.Payload.recordExempt()
	} else {
		r.postpone(true)
	}
}
