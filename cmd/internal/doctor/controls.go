package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// controls checks for operators' controls that are about to expire, and for those that no instance
// can apply.
func (x *examination) controls(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	controls, err := hotkeys.ListControls(call, x.Client, x.Namespace)
	if err != nil {
		x.add("controls", Unknown, fmt.Sprintf("operators' controls cannot be read: %v", err), "")
		return
	}
	bad := 0
	for i := range controls {
		c := &controls[i]
		name := fmt.Sprintf("%s of %s by %s", c.Action, c.Text, c.Rule)
		if why := x.refusal(c); why != "" {
			bad++
			x.add("controls", Problem, name+" has no effect: "+why, "hotparam release '"+c.Text+"', or correct the rule")
			continue
		}
		if left := time.Until(c.Until); left < endsSoon {
			bad++
			x.add("controls", Warning, fmt.Sprintf("%s ends in %v", name, left.Round(time.Second)), "set it again if it is still needed, or put it into the file")
		}
	}
	if n := len(controls); n >= published.MaxControls {
		x.add("controls", Problem, fmt.Sprintf("there are %d controls, the maximum", n), "release some, or put them into the file as except")
	}
	if bad == 0 {
		x.add("controls", OK, hotwords.Plural(len(controls), "control")+" in force", "")
	}
}

// refusal returns the reason why instances with the file's rules ignore a control, or "".
func (x *examination) refusal(c *published.Control) string {
	if x.Rules == nil {
		return ""
	}
	index := slices.IndexFunc(x.Rules.Rules, func(r rules.Rule) bool { return r.ID == c.Rule })
	switch {
	case index < 0:
		return "the file has no such rule"
	case c.Action == published.ControlPin && !x.Rules.Rules[index].Limit.HasNumber():
		return "the rule has no limit to hold the key to, or none with a number"
	}
	return ""
}
