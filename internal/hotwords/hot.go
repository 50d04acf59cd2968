// Package hotwords describes rules and hot keys in words.
//
//	rule.go limit.go  a rule: its parameters, its thresholds, its limit
//	onhot.go          its on_hot, and what that does for a hot key
//	hot.go            a hot key: its rate, its bounds, its threshold
//	outcomes.go       what became of its requests
//	near.go           how near a key is to being hot
//	hold.go           how a key that is hot by its cost is held, and why
//	numbers.go        numbers of a unit, as a rules file has them
package hotwords

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/hotparam/hotparam/internal/admitted"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// controlled has the past participle of each action of an operator.
var controlled = map[published.ControlAction]string{
	published.ControlPin: "pinned", published.ControlBlock: "blocked", published.ControlAllow: "allowed",
}

// Controlled returns the past participle of an action: "pinned", "blocked" or "allowed".
func Controlled(action published.ControlAction) string { return controlled[action] }

// Speed formats a rate of a unit: "208.0/s", "1.5 MB/s", "350.0 ms/s", "12.0 units/s". The rate
// of a key whose unit is unknown is formatted as one of requests, the zero unit.
func Speed(perSecond float64, unit rules.Unit) string {
	switch unit {
	case rules.Bytes:
		return Bytes(perSecond) + "/s"
	case rules.Requests:
		return fmt.Sprintf("%.1f/s", perSecond)
	}
	return fmt.Sprintf("%.1f %s/s", perSecond, unit)
}

// Bytes formats a number of bytes in the unit that leaves at most three digits before the decimal
// point.
func Bytes(n float64) string {
	unit := "B"
	for _, larger := range [...]string{"kB", "MB", "GB", "TB"} {
		if n < 999.95 {
			break
		}
		n, unit = n/1000, larger
	}
	if unit == "B" {
		return fmt.Sprintf("%.0f B", n)
	}
	return fmt.Sprintf("%.1f %s", n, unit)
}

// Admitted compares the rate that all instances admit with the limit: "4980/s of 5000/s". With a
// limit for each of three instances it returns "14940/s of 3 × 5000/s".
func Admitted(g admitted.Gauge, unit rules.Unit) string {
	if !g.Known() {
		return "-"
	}
	words := AdmittedRate(g, unit) + " of "
	if g.Limits > 1 {
		words += strconv.Itoa(g.Limits) + " × "
	}
	if words += Rate(g.Limit, unit); g.AtLeast {
		words = "≥ " + words
	}
	return words
}

// AdmittedRate formats the admitted rate of a gauge that is known, per the time of its limit:
// "4980/s", "9/1m".
func AdmittedRate(g admitted.Gauge, unit rules.Unit) string {
	n := g.PerSecond * g.Limit.Per.Seconds()
	_, per, _ := strings.Cut(g.Limit.String(), "/")
	if unit == rules.Bytes {
		return Bytes(n) + "/" + per
	}
	return Rate(rules.Rate{N: int64(math.Round(n)), Per: g.Limit.Per}, unit)
}

// Bounds returns the bounds of a hot key's count in the window of its threshold:
// "212-230 in 1s", "1.5 MB in 10s", "212 or more in 1s".
func Bounds(h *published.Hot) string {
	count := func(n int64) string {
		switch h.Cause.Unit {
		case rules.Bytes:
			return Bytes(float64(n))
		case rules.Requests:
			return strconv.FormatInt(n, 10)
		}
		return fmt.Sprintf("%d %s", n, h.Cause.Unit)
	}
	words := count(h.Low)
	switch high := count(h.High); {
	case h.High == published.Unknown:
		words += " or more"
	case high != words:
		words += "-" + high
	}
	if h.Cause.IsZero() {
		return words
	}
	return words + " in " + Span(h.Cause.Rate.Per)
}

// Cause formats the threshold that made a key hot: "200/s", "10MB/1m", "20%/1m", "8x/1m", "8x/1m
// over day", "top 3/1m". It returns "-" if the threshold is unknown.
func Cause(c published.Cause) string {
	switch {
	case c.IsZero():
		return "-"
	case c.Kind == rules.FixedRate:
		return Rate(c.Rate, c.Unit)
	}
	return c.String()
}
