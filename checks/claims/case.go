package claims

import (
	"fmt"
	"strings"
	"time"

	"github.com/hotparam/hotparam/checks/exact"
	"github.com/hotparam/hotparam/rules"
)

// Case is one run: the stream, the network that it passes through, and the thresholds.
type Case struct {
	Name   string
	Stream func(seed uint64) (EventStream, error)
	// Rules are all applied in the same run, each with counts of its own.
	Rules []HotRule
	// Instances is the number of collectors that the stream is spread over.
	Instances int
	// Clocks are the clocks of the first instances; the clocks of the others are right. If Clocks
	// is nil, instances do not send times and all clocks are right. If a clock is set during the
	// run, nothing may be held back, so Lines must be 0.
	Clocks []InstanceClock
	// Keys is the number of keys that a collector holds. Zero means its default.
	Keys int
	// Lines is the most lines that a collector sends in one flush. Zero means no limit.
	Lines int
	// Memory is the most that the windows of all parts may hold, in bytes. Parts is the number of
	// detectors that the keys are spread over.
	Memory  int64
	Parts   int
	Network Network
	Seed    uint64
	// Within is the time from the stream's first event in which all keys that ever reach the
	// threshold must be hot. Zero means any time.
	Within time.Duration
	// Measure measures memory and allocations of the whole process, so nothing else may run in
	// it.
	Measure bool
}

// HotRule defines when a key is hot: at N counts within D. It cools once it has been below Exit for
// CoolDown and Hold has passed.
type HotRule struct {
	N, Exit  int64
	D, Hold  time.Duration
	CoolDown time.Duration
	// Changes is the most changes of a key's state. Zero means any number.
	Changes int
}

// NewRule returns a rule with the documented default exit, 80% of the threshold.
func NewRule(n int64, d, hold time.Duration) HotRule {
	return HotRule{N: n, Exit: max(1, (n*4+4)/5), D: d, Hold: hold}
}

// width returns the width of the window's panes.
func (r HotRule) width() int64 { return exact.NewWindow(r.D).Width }

// Network holds the delays, losses and duplication of packets in transit.
type Network struct {
	// Least and Most bound each packet's delay. Every packet has its own delay, so packets
	// overtake each other.
	Least, Most time.Duration
	// Lost and Doubled are the shares of packets that are lost and delivered twice.
	Lost, Doubled float64
}

// lag is the time that the detectors wait for counts in transit.
const lag = 250 * time.Millisecond

// grace is how long after the end of a window counts are still placed.
const grace = 2 * time.Second

var anyRoute, _ = rules.ParseRoute("*")

func ruleID(i int) string { return fmt.Sprintf("r%d", i) }

// rules returns the case's rules in the form that the product takes.
func (c *Case) rules() *rules.Rules {
	ruleset := &rules.Rules{Namespace: "claims"}
	for i, r := range c.Rules {
		ruleset.Rules = append(ruleset.Rules, rules.Rule{
			ID:    ruleID(i),
			Match: rules.Match{Route: anyRoute},
			By:    rules.By{Kind: rules.ByAll},
			Hot:   []rules.Threshold{{Rate: rules.Rate{N: r.N, Per: r.D}, Exit: rules.NewFraction(r.Exit, r.N), Hold: r.Hold, CoolDown: r.CoolDown}},
		})
	}
	return ruleset
}

// String describes the network in a few words.
func (n Network) String() string {
	var words []string
	if n.Most > 0 {
		words = append(words, fmt.Sprintf("%v..%v", n.Least, n.Most))
	}
	if n.Lost > 0 {
		words = append(words, fmt.Sprintf("lost %g%%", n.Lost*100))
	}
	if n.Doubled > 0 {
		words = append(words, fmt.Sprintf("doubled %g%%", n.Doubled*100))
	}
	if len(words) == 0 {
		return "good"
	}
	return strings.Join(words, ", ")
}
