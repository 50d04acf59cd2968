package hotwords

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hotparam/hotparam/internal/admitted"
	"github.com/hotparam/hotparam/rules"
)

// onHotWords describes a rule's on_hot.
func onHotWords(o *rules.OnHot) string {
	all := o.WithDefaults()
	var parts []string
	if all.Coalesce {
		parts = append(parts, "identical requests join for up to "+Span(all.Wait))
	}
	if all.Cache > 0 {
		parts = append(parts, "from memory for "+Span(all.Cache))
	}
	if all.Stale > 0 {
		parts = append(parts, "stale for "+Span(all.Stale))
	}
	if len(all.Vary) > 0 {
		parts = append(parts, "also by "+strings.Join(all.Vary, " and "))
	}
	var statuses []string
	for _, status := range all.Status {
		statuses = append(statuses, strconv.Itoa(status))
	}
	parts = append(parts, "status "+strings.Join(statuses, " or "), fmt.Sprintf("up to %s each and %s in all", Size(all.Max), Size(all.Total)))
	return "on_hot: " + strings.Join(parts, ", ")
}

// OnHot describes how on_hot answers a hot key's requests, by all instances: "3400/s from memory,
// 20/s joined, 4/s alone (set-cookie)". It returns "" if it answers none.
func OnHot(o admitted.OnHot) string {
	var parts []string
	for _, part := range []struct {
		perSecond float64
		words     string
	}{{o.Stored, "from memory"}, {o.Joined, "joined"}, {o.Alone, "alone"}} {
		switch n := part.perSecond; {
		case n == 0:
		case n < 10:
			parts = append(parts, fmt.Sprintf("%.1f/s %s", n, part.words))
		default:
			parts = append(parts, fmt.Sprintf("%.0f/s %s", n, part.words))
		}
	}
	words := strings.Join(parts, ", ")
	if o.Alone > 0 && o.AloneFor != "" {
		words += " (" + o.AloneFor + ")"
	}
	return words
}
