package suggest

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/capacity"
	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// Capacity is a route with the rates that it was seen to serve, and a limit by them.
type Capacity struct {
	// Pool and Rule are those by which an aggregator has seen the route, and Now its present
	// requests a second there.
	Pool  string  `json:"pool,omitempty"`
	Rule  string  `json:"rule,omitempty"`
	Route string  `json:"route"`
	Now   float64 `json:"per_second,omitempty"`
	capacity.Seen
	// Limit is the proposed limit for all instances together, such as "412/s". It is "" if the
	// route was seen too briefly, or no rule can name it.
	Limit string `json:"limit,omitempty"`

	params []string // names of the parameters by which a rule may find costly values
}

// TooBrief says what a route lacks for a proposal.
const TooBrief = "a route needs 30 windows of ten seconds with requests, and 200 requests"

// CapacityRules sets the limits of routes, and returns a rules file with them, or "" if there is
// none. Its comments have the measurements. Its rules have ids that are not taken, and limits in shadow
// mode.
func CapacityRules(all []*Capacity, taken []string) string {
	var b strings.Builder
	b.WriteString("rules:\n")
	empty := b.Len()
	var routes []string
	for _, c := range all {
		if len(routes) == maxRules || !c.IsEnough() || slices.Contains(routes, c.Route) || !namesRoute(c.Route) {
			continue
		}
		id := ruleID(c.Route, "capacity", taken)
		rule := fmt.Sprintf("  - id: %s\n    match: {route: %s}\n    limit: {rate: %s, scope: fleet, on_limit: shadow}\n", id, quote(c.Route), c.limit())
		if !parses(rule) {
			continue
		}
		routes = append(routes, c.Route)
		c.Limit = c.limit()
		taken = append(slices.Clone(taken), id)
		fmt.Fprintf(&b, "  # %s\n%s", c.Words(), rule)
		if len(c.params) == 0 {
			continue
		}
		id = ruleID(c.Route, "cost", taken)
		rule = fmt.Sprintf("  - id: %s\n    match: {route: %s}\n    by: %s\n    hot: {cost: auto}\n    limit: {concurrency: auto, on_limit: shadow}\n", id, quote(c.Route), c.selection())
		if parses(rule) {
			taken = append(taken, id)
			b.WriteString("  # This one finds the values that make the route slow for others, by their cost.\n" + rule)
		}
	}
	if b.Len() == empty {
		return ""
	}
	return b.String()
}

// namesRoute reports whether the route of keys is one of requests. A rule may omit the route from
// its keys, and requests without a route share one.
func namesRoute(route string) bool { return route != "*" && route != middleware.Unrouted }

// parses reports whether a rule is valid. A route or a parameter may have a name that no rule can
// have.
func parses(rule string) bool {
	_, err := config.Parse("suggestion", []byte("rules:\n"+rule))
	return err == nil
}

// limit returns the lowest rate that would have allowed the served requests.
func (c *Capacity) limit() string {
	if c.Served < 10 {
		return rate(max(1, roundUp(c.Served*60)), time.Minute)
	}
	return rate(roundUp(c.Served), time.Second)
}

// roundUp returns the least integer that is not below f, which may be off by its rounding.
func roundUp(f float64) int64 { return int64(math.Ceil(f - 1e-6)) }

// selection returns the field by of a rule that finds values by their cost.
func (c *Capacity) selection() string {
	var quoted []string
	for _, name := range c.params {
		quoted = append(quoted, quote(name))
	}
	switch n := len(quoted); {
	case n == 1:
		return "[" + quoted[0] + "]"
	case n <= rules.MaxCombined:
		return "{combinations: [" + strings.Join(quoted, ", ") + "]}"
	}
	return "combinations"
}

// Words describes the measurements in one line.
func (c *Capacity) Words() string {
	words := fmt.Sprintf("A request usually takes %s. Up to %s were served at that speed, in a window of 10 s.", Each(c.Usual), PerSecond(c.Served))
	windows := fmt.Sprintf("%d of %d windows", c.Slow, c.Windows)
	switch {
	case c.Slow == 0 && c.Served < capacity.LeastRate:
		return words
	case c.Slow == 0:
		return words + " It was never slow, so it may serve more."
	case c.SlowFrom >= c.Served:
		return words + fmt.Sprintf(" It was slow from %s on (%s).", PerSecond(c.SlowFrom), windows)
	}
	return words + fmt.Sprintf(" It was slow at %s already (%s): bursts, or something other than the number of requests, made it slow.", PerSecond(c.SlowFrom), windows)
}

// Each formats the time of a request with two digits.
func Each(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	unit := time.Duration(1)
	for d/unit >= 100 {
		unit *= 10
	}
	return d.Round(unit).String()
}

// PerSecond formats a rate of requests.
func PerSecond(n float64) string {
	if n < 10 {
		return strconv.FormatFloat(n, 'f', 1, 64) + "/s"
	}
	return hotwords.Thousands(int64(math.Round(n))) + "/s"
}
