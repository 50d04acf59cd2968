package middleware

import (
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// SetControls replaces the operators' controls in force; see [published.Control]. Controls of
// rules that the guard does not have, and pins of rules without a limit, are ignored and
// logged. SetControls is usually called by a hotkeys.ControlWatcher, which also removes
// controls that end. The guard keeps the slice.
func (g *Guard) SetControls(list []published.Control) {
	g.controlled.mu.Lock()
	defer g.controlled.mu.Unlock()
	g.controlled.given = list
	g.applyControls()
}

// Controls returns the controls that the guard was given last. They are sorted by rule and
// key if a hotkeys.ControlWatcher gave them. The slice must not be changed.
func (g *Guard) Controls() []published.Control {
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
	var pins []published.Hot
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
			applied = &ruleControls{actions: make(map[string]published.ControlAction)}
			next[c.Rule] = applied
		}
		applied.actions[c.Key.String()] = c.Action
		applied.overrides = applied.overrides || c.Action != published.ControlPin
		if c.Action == published.ControlPin && len(r.Hot) > 0 {
			pins = append(pins, published.Hot{
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
func (r *rule) whyNoControl(c *published.Control) string {
	switch {
	case r == nil:
		return "the file has no such rule"
	case c.Action == published.ControlPin && r.Limit == nil:
		return "the rule has no limit to hold the key to"
	case c.Action == published.ControlPin && !r.Limit.HasNumber():
		return "concurrency: auto has a number only for keys that are hot by their cost"
	case !c.Action.Valid():
		return "the action is unknown: update this program"
	}
	return ""
}
