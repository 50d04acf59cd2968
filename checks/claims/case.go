package claims

import (
	"fmt"
	"strings"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Case is one run: the stream, the network that it passes through, and the thresholds.
type Case struct {
	Name   string
	Stream func(seed uint64) (Stream, error)
	// Rules are looked for all at once, each with counts of its own.
	Rules []Rule
	// Instances is over how many collectors the stream is spread.
	Instances int
	// Clocks are those of the first instances, the others' are right; nil: no instance says
	// when it sends, and all are right. With a clock that is set nothing is to be held back:
	// Lines is 0.
	Clocks []Clock
	// Keys is how many keys a collector holds. Zero means its default.
	Keys int
	// Lines is the most that a collector sends in one flush; 0: as many as
	// there are.
	Lines int
	// Memory is what the windows of all parts may hold, in bytes; Parts is over
	// how many detectors the keys are spread.
	Memory  int64
	Parts   int
	Network Network
	Seed    uint64
	// Within is how soon after the stream's first event all keys that reach the
	// threshold at all must be hot. Zero means any time.
	Within time.Duration
	// Measure measures memory and allocations, of the whole process: nothing else
	// may run in it.
	Measure bool
}

// Rule is when a key is hot: N counts within D. It cools when it has been below
// Exit for CoolDown, not before Hold has passed.
type Rule struct {
	N, Exit  int64
	D, Hold  time.Duration
	CoolDown time.Duration
	// Changes is how often a key may change its state. Zero means any number.
	Changes int
}

// NewRule has the documented default for the exit: 80% of the threshold.
func NewRule(n int64, d, hold time.Duration) Rule {
	return Rule{N: n, Exit: max(1, (n*4+4)/5), D: d, Hold: hold}
}

// width and panes are those of the rule's window: panes of D/60, but at least
// 100 ms, and as many whole ones as fit.
func (r Rule) width() int64 { return max(int64(100*time.Millisecond), int64(r.D)/60) }
func (r Rule) panes() int64 { return int64(r.D) / r.width() }

// Network is what becomes of packets on their way.
type Network struct {
	// Delay is between these two, for each packet anew, so packets overtake
	// each other.
	Least, Most time.Duration
	// Lost and Doubled are the parts of all packets that this happens to.
	Lost, Doubled float64
}

// lag is how long the detectors wait for counts that are on their way.
const lag = 250 * time.Millisecond

// grace is how much later than a window counts are still placed.
const grace = 2 * time.Second

var anyRoute, _ = rules.ParseRoute("*")

func ruleID(i int) string { return fmt.Sprintf("r%d", i) }

// rules are the case's in the product's words.
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

// String describes the case's conditions in a few words.
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
