package hotwords

import (
	"fmt"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/published"
)

var holdStates = map[published.HoldStage]string{published.HoldTrial: "on trial", published.HoldKept: "held", published.HoldSuspected: "suspected"}

// HoldState returns the stage of a hold in one or two words.
func HoldState(h *published.Hold) string { return holdStates[h.Stage] }

// Treatment describes the limit of a key that is hot by its cost:
// "on trial: 0 at a time", "held to 1 at a time", "suspected, not held".
func Treatment(h *published.Hold) string {
	switch h.Stage {
	case published.HoldTrial:
		return fmt.Sprintf("on trial: %d at a time", h.Permits)
	case published.HoldKept:
		return fmt.Sprintf("held to %d at a time", h.Permits)
	}
	return "suspected, not held"
}

// Evidence describes the reasons for which a key is hot by its cost, as far as they are known:
// "93% of orders-db's time · 812 ms a request, others 4.1 ms · others 96 → 4.6 ms since".
func Evidence(h *published.Hold) string {
	var parts []string
	if h.Share > 0 {
		parts = append(parts, fmt.Sprintf("%.0f%% of %s's time", h.Share*100, h.Pool))
	}
	if h.Each > 0 {
		each := millis(h.Each) + " ms a request"
		if h.Usual > 0 {
			each += ", others " + millis(h.Usual) + " ms"
		}
		parts = append(parts, each)
	}
	switch {
	case h.Slow == 0:
	case h.Stage == published.HoldKept && h.Now > 0:
		parts = append(parts, fmt.Sprintf("others %s → %s ms since", millis(h.Slow), millis(h.Now)))
	default:
		parts = append(parts, fmt.Sprintf("others %s ms meanwhile", millis(h.Slow)))
	}
	return strings.Join(parts, " · ")
}

// Hold describes how a key that is hot by its cost is held, and why, in one line.
func Hold(h *published.Hold) string {
	words, evidence := Treatment(h), Evidence(h)
	switch {
	case evidence == "":
		return words
	case h.Stage == published.HoldSuspected:
		return words + ": " + evidence
	}
	return words + " · " + evidence
}

// millis formats a duration in milliseconds, with a decimal below ten.
func millis(d time.Duration) string {
	n := float64(d) / float64(time.Millisecond)
	if n < 9.95 {
		return fmt.Sprintf("%.1f", n)
	}
	return fmt.Sprintf("%.0f", n)
}
