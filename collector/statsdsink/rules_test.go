package statsdsink

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/internal/former"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// While rules are replaced, the sums in packets are those of the rules in force. The sums of a rule
// that returns continue. Counts of removed rules that are still sent are included.
func TestSetRules(t *testing.T) {
	rule := func(id string) rules.Rule {
		return rules.Rule{ID: id, Hot: []rules.Threshold{over(40, time.Second)}}
	}
	set := func(ids string) *rules.Rules {
		rules := &rules.Rules{Namespace: "shop"}
		for _, id := range ids {
			rules.Rules = append(rules.Rules, rule(string(id)))
		}
		return rules
	}
	out := &packets{}
	sink, err := New(Config{Rules: set("ab"), Sender: out, Instance: "api-1"})
	if err != nil {
		t.Fatal(err)
	}
	c := newCollector(t, collector.Config{Sink: sink, Rules: set("ab")})
	now := time.Unix(1_700_000_000, 0)
	sums := make(map[string]uint64) // sent of each rule
	for i, ids := range []string{"ab", "bca", "ca", "c", "abc", "ab"} {
		ruleset := set(ids)
		c.Reload(ruleset)
		for j, id := range []string{"a", "b", "c"} { // also for removed rules
			member := fmt.Appendf(nil, "%s GET /s?q=%d", id, i)
			if strings.Contains("ab"+ids, id) {
				c.Add(rules.Hash(member), member, uint64(j+1))
			}
		}
		out.all = nil
		c.Flush(t.Context(), now)
		now = now.Add(base.FlushInterval)
		m, err := wire.ParseMeta([]byte(strings.SplitN(out.all[0], "\n", 2)[0]))
		if err != nil {
			t.Fatal(err)
		}
		if mark := wire.RulesMark(ruleset); mark == 0 && len(m.Rules) > 0 {
			t.Errorf("%s: %q has sums of one rule", ids, out.all[0])
		} else if mark != 0 {
			told := make([]uint64, 2*len(ids))
			if !wire.ParseRuleSums(told, m.Rules, mark) {
				t.Fatalf("%s: no sums in %q", ids, out.all[0])
			}
			for at, id := range ids {
				if got := told[2*at] + told[2*at+1]; got != sums[string(id)] {
					t.Errorf("%s: the sum of %c is %d, want %d", ids, id, got, sums[string(id)])
				}
			}
		}
		for _, packet := range out.all {
			for _, line := range strings.Split(packet, "\n")[1:] {
				rest, _, _ := wire.CutAccount([]byte(line))
				if l, err := wire.ParseLine(rest); err != nil {
					t.Errorf("%q: %v", line, err)
				} else {
					sums[strings.TrimPrefix(string(l.Prefix), "shop.")] += uint64(l.N)
				}
			}
		}
	}
	if s := c.Stats(); s.Dropped.Sum() != 0 || sums["a"] != 6 || sums["b"] != 12 || sums["c"] != 12 {
		t.Errorf("sent %v, %+v", sums, s)
	}
}

// The state of removed rules is bounded.
func TestFormerRulesAreBounded(t *testing.T) {
	made, err := New(Config{Rules: ruled(over(1, time.Second)), Sender: &packets{}, Instance: "api-1"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range former.Max + 100 {
		made.SetRules(&rules.Rules{Namespace: "shop", Rules: []rules.Rule{{ID: fmt.Sprint("r", i), Hot: []rules.Threshold{over(1, time.Second)}}}})
	}
	if s := made.(*sink); len(s.rules) > former.Max+1 || len(s.places) > maxPlaces {
		t.Errorf("%d rules, %d places", len(s.rules), len(s.places))
	}
}
