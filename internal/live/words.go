package live

import (
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/internal/hotwords"
)

func span(d time.Duration) string { return hotwords.Span(d) }

// author returns who set a control: the user of Redis, which is proven, and the claimed one,
// which is marked as a claim.
func author(c *hotparam.Control) string {
	switch {
	case c.Claimed == "":
		return c.By
	case c.By == "":
		return "claims to be " + c.Claimed
	}
	return c.By + " (claims to be " + c.Claimed + ")"
}

func limitWords(h *hotparam.Hot) string {
	if h.Limit.IsZero() {
		return ""
	}
	return hotwords.Rate(h.Limit, h.Cause.Unit)
}
