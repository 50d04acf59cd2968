package hotwords

import (
	"fmt"
	"strings"
	"time"

	"github.com/hotparam/hotparam/rules"
)

var holdStates = map[rules.HoldStage]string{rules.HoldTrial: "on trial", rules.HoldKept: "held", rules.HoldSuspected: "suspected"}

// HoldState returns the stage of a hold in one or two words.
func HoldState(h *rules.Hold) string { return holdStates[h.Stage] }

// Treatment describes the limit of a key that is hot by its cost:
// "on trial: 0 at a time", "held to 1 at a time", "suspected, not held".
func Treatment(h *rules.Hold) string {
	switch h.Stage {
	case rules.HoldTrial:
		return fmt.Sprintf("on trial: %d at a time", h.Permits)
	case rules.HoldKept:
		return fmt.Sprintf("held to %d at a time", h.Permits)
	}
	return "suspected, not held"
}

// Evidence describes the reasons for which a key is hot by its cost, as far as they are known:
// "93% of orders-db's time · 812 ms a request, others 4.1 ms · others 96 → 4.6 ms since".
func Evidence(h *rules.Hold) string {
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
	case h.Stage == rules.HoldKept && h.Now > 0:
		parts = append(parts, fmt.Sprintf("others %s → %s ms since", millis(h.Slow), millis(h.Now)))
	default:
		parts = append(parts, fmt.Sprintf("others %s ms meanwhile", millis(h.Slow)))
	}
	return strings.Join(parts, " · ")
}

// Hold describes how a key that is hot by its cost is held, and why, in one line.
func Hold(h *rules.Hold) string {
	words, evidence := Treatment(h), Evidence(h)
	switch {
	case evidence == "":
		return words
	case h.Stage == rules.HoldSuspected:
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
