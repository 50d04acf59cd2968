package listed

import (
	"time"

	"github.com/hotparam/hotparam/internal/published"
)

// Control is an operator's control of a key.
type Control struct {
	Key    string    `json:"key"`
	Rule   string    `json:"rule"`
	Action string    `json:"action"` // "block", "allow", "pin"
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	Why    string    `json:"why"`
	By     string    `json:"by"`      // the user of Redis
	Claim  string    `json:"claimed"` // name given by the operator's program; not proven
}

// OfControls returns controls in their output form. The result is never nil.
func OfControls(controls []published.Control) []Control {
	out := make([]Control, 0, len(controls))
	for i := range controls {
		c := &controls[i]
		out = append(out, Control{c.Text, c.Rule, string(c.Action), c.Since.UTC(), c.Until.UTC(), c.Why, c.By, c.Claimed})
	}
	return out
}
