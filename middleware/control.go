package middleware

import (
	"sync"

	"github.com/hotparam/hotparam/rules"
)

// controls are the operators' controls in force, by rule. They are a snapshot that is never
// changed.
type controls map[string]*ruleControls

// ruleControls are the controls of one rule's keys.
type ruleControls struct {
	actions   map[string]rules.ControlAction // by member
	overrides bool                           // whether some are not pins; the hot set has the pins
}

// forRule returns the controls of a rule, or nil if there are none.
func (c *controls) forRule(rule string) *ruleControls {
	if c == nil {
		return nil
	}
	return (*c)[rule]
}

// controlState holds the controls that [Guard.SetControls] was given.
type controlState struct {
	mu      sync.Mutex // locked after sharing.mu, and before the hot set's lock
	given   []rules.Control
	ignored map[rules.Key]bool // keys whose controls have been logged as ignored
}

// SetControls replaces the operators' controls in force; see [rules.Control]. Controls of
// rules that the guard does not have, and pins of rules without a limit, are ignored and
// logged. SetControls is usually called by a hotkeys.ControlWatcher, which also removes
// controls that end. The guard keeps the slice.
func (g *Guard) SetControls(list []rules.Control) {
	g.controlled.mu.Lock()
	defer g.controlled.mu.Unlock()
	g.controlled.given = list
	g.applyControls()
}

// Controls returns the controls that the guard was given last. They are sorted by rule and
// key if a hotkeys.ControlWatcher gave them. The slice must not be changed.
func (g *Guard) Controls() []rules.Control {
	g.controlled.mu.Lock()
	defer g.controlled.mu.Unlock()
	return g.controlled.given
}

// renewControls applies the controls again after the rules have changed.
func (g *Guard) renewControls() {
	g.controlled.mu.Lock()
	defer g.controlled.mu.Unlock()
	if len(g.controlled.given) > 0 {
		g.applyControls()
	}
}

// applyControls puts the given controls in force. The caller holds controlled.mu.
func (g *Guard) applyControls() {
	set, next := g.rules.Load(), make(controls)
	var pins []rules.Hot
	ignored := make(map[rules.Key]bool)
	for i := range g.controlled.given {
		c := &g.controlled.given[i]
		r := set.byID(c.Rule)
		if why := r.whyNoControl(c); why != "" {
			if !g.controlled.ignored[c.Key] {
				g.opts.log.Warn("an operator's control is ignored here", "action", c.Action, "rule", c.Rule, "why", why)
			}
			ignored[c.Key] = true
			continue
		}
		applied := next[c.Rule]
		if applied == nil {
			applied = &ruleControls{actions: make(map[string]rules.ControlAction)}
			next[c.Rule] = applied
		}
		applied.actions[c.Key.String()] = c.Action
		applied.overrides = applied.overrides || c.Action != rules.ControlPin
		if c.Action == rules.ControlPin && len(r.Hot) > 0 {
			pins = append(pins, rules.Hot{
				Key: c.Key, Since: c.Since, Until: c.Until, Limit: r.Limit.Rate, Burst: r.Limit.Burst, Mode: r.Limit.Mode,
			})
		}
	}
	g.controlled.ignored = ignored
	// A key enters the hot set before its pin overrides exceptions, and leaves it no earlier.
	g.hot.SetPins(pins)
	if len(next) == 0 {
		g.controls.Store(nil)
		return
	}
	g.controls.Store(&next)
}

// whyNoControl returns why a control is ignored, or "".
func (r *rule) whyNoControl(c *rules.Control) string {
	switch {
	case r == nil:
		return "the file has no such rule"
	case c.Action == rules.ControlPin && r.Limit == nil:
		return "the rule has no limit to hold the key to"
	case c.Action == rules.ControlPin && !r.Limit.HasNumber():
		return "concurrency: auto has a number only for keys that are hot by their cost"
	case !c.Action.Valid():
		return "the action is unknown: update this program"
	}
	return ""
}

// controlled collects the keys that a rule with controls has made from a request. All keys are
// counted and looked up before any is limited, since an allowed key lifts the rule's limit
// from the whole request.
type controlled struct {
	controls *ruleControls // the present rule's controls; nil if it has none
	owed     int           // number of keys that the request owed a cost to before the rule
	blocked  bool          // one of the keys is blocked
	allowed  bool          // one of the keys is allowed
	texts    []byte        // the keys, one after the other
	keys     []controlledKey
}

// controlledKey is one key of a rule with controls.
type controlledKey struct {
	to     int // the key's end in texts
	hash   uint64
	spec   *limitSpec // its limit
	action rules.ControlAction
	denied bool // whether an exception in the file blocks it
}

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
	x.blocked = x.blocked || key.action == rules.ControlBlock
	x.allowed = x.allowed || key.action == rules.ControlAllow
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
