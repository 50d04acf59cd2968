package replay

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hotparam/hotparam/checks/exact"
	"github.com/hotparam/hotparam/internal/accesslog"
	"github.com/hotparam/hotparam/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tester is the common part of tests, benchmarks and properties.
type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// testRules returns one rule for all requests.
func testRules(t tester, by string, th exact.ThresholdSpec, limit *rules.Limit) *rules.Rules {
	t.Helper()
	route, err := rules.ParseRoute("*")
	if err != nil {
		t.Fatal(err)
	}
	rule := rules.Rule{
		ID: "replay", Match: rules.Match{Route: route}, Limit: limit,
		Hot: []rules.Threshold{{Rate: rules.Rate{N: th.N, Per: th.D}, Exit: rules.NewFraction(th.Exit.Num, th.Exit.Den), Hold: th.Hold, CoolDown: th.CoolDown}},
	}
	switch by {
	case "all":
		rule.By.Kind = rules.ByAll
	case "each":
		rule.By.Kind = rules.ByEach
	default:
		rule.By.Kind = rules.ByNames
		for name := range strings.SplitSeq(by, ",") {
			rule.By.Names = append(rule.By.Names, rules.Param{Name: name})
		}
	}
	return &rules.Rules{Namespace: "replay", Rules: []rules.Rule{rule}}
}

func stdin(t tester, in io.Reader) *accesslog.Log {
	t.Helper()
	return stdinBy(t, in, 0)
}

// stdinBy returns a log on standard input with another reorder buffer than the default.
func stdinBy(t tester, in io.Reader, reorder time.Duration) *accesslog.Log {
	t.Helper()
	log, err := accesslog.Open([]string{"-"}, accesslog.Options{Stdin: in, Reorder: reorder})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// jsonLog returns a log of these requests, in this order.
func jsonLog(t tester, requests []exact.TraceRequest) []byte {
	t.Helper()
	var b bytes.Buffer
	err := exact.WriteJSON(&b, func(yield func(exact.TraceRequest, error) bool) {
		for _, r := range requests {
			if !yield(r, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// collect appends the events of OnEvent.
type collect struct {
	t      tester
	events []Event
}

func (c *collect) add(e Event) { c.events = append(c.events, e) }

func (c *collect) exact() []exact.HotChange {
	var events []exact.HotChange
	for _, e := range c.events {
		at, err := time.Parse(time.RFC3339Nano, e.Time)
		if err != nil {
			c.t.Fatal(err)
		}
		x := exact.HotChange{Key: e.Key, Hot: e.Event == "hot", At: at.UnixNano(), Low: e.Low, High: -1, Rule: e.Rule, Threshold: e.Threshold}
		if e.High != nil {
			x.High = *e.High
		}
		events = append(events, x)
	}
	return events
}

func exactSummary(s Summary) exact.Summary {
	return exact.Summary{Requests: s.Requests, Skipped: s.Skipped, Keys: s.Keys, Hot: s.Hot, Limited: s.Limited, Late: s.Late, Seconds: s.Seconds}
}
