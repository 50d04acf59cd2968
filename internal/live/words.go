package live

import (
	"time"

	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/rules"
)

func span(d time.Duration) string { return hotwords.Span(d) }

// author returns who set a control: the user of Redis, which is proven, and the claimed author,
// which is marked as a claim.
func author(c *rules.Control) string {
	switch {
	case c.Claimed == "":
		return c.By
	case c.By == "":
		return "claims to be " + c.Claimed
	}
	return c.By + " (claims to be " + c.Claimed + ")"
}

// lasted returns a duration as text, in whole seconds from ten seconds on.
func lasted(d time.Duration) string {
	d = max(0, d)
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
