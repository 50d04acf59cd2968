package aggregator

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/rules"
)

// leveled feeds a detector the keys that guards build from q and from several levels of the
// address.
type leveled struct{ combined }

func newLeveled(names ...string) *leveled {
	out := newRecorder()
	return &leveled{combined{NewDetector(DetectorConfig{Rules: testRules(leveledRule(names...)), Publisher: out}), out, noon}}
}

func leveledRule(names ...string) rules.Rule {
	rule := hotRule("r", 1, time.Second)
	rule.Hot = []rules.Threshold{rules.NewThreshold(rules.Rate{N: 100, Per: time.Second})}
	rule.By.Kind = rules.ByCombinations
	for _, name := range names {
		p := rules.Param{Name: name}
		if source, level, ok := strings.Cut(name, ":"); ok {
			p.Source, _ = rules.ParseSource(source)
			p.Name = level
		}
		rule.By.Names = append(rule.By.Names, p)
	}
	return rule
}

// requests counts n requests of an IPv4 address. The keys are written by hand: "q" sorts after
// "ip" and before "v4".
func (c *leveled) requests(n int64, addr, q string) {
	network := func(bits int) string {
		ip := net.ParseIP(addr).To4()
		return fmt.Sprintf("addr:v4%%2F%d=%v%%2F%d", bits, ip.Mask(net.CIDRMask(bits, 32)), bits)
	}
	keys := []string{"addr:ip=" + addr, network(24), network(16)}
	if q != "" {
		keys = append(keys, "q="+q, keys[0]+"&q="+q, "q="+q+"&"+keys[1], "q="+q+"&"+keys[2])
	}
	for _, key := range keys {
		text := "GET /s?" + key
		c.Count(decode.Count{Hash: testHash(text), Text: []byte(text), N: n, When: c.now, Instance: "i"})
	}
}

// The narrowest network that explains the traffic is listed.
func TestTheNarrowestLevelThatExplainsIsListed(t *testing.T) {
	for name, test := range map[string]struct {
		requests func(c *leveled)
		want     []string
	}{
		"one address": {func(c *leveled) { c.requests(120, "192.0.2.7", "") }, []string{"addr:ip=192.0.2.7"}},
		"an address, and little beside": {func(c *leveled) {
			c.requests(150, "192.0.2.7", "")
			c.requests(30, "192.0.2.8", "")
			c.requests(30, "192.0.3.8", "")
		}, []string{"addr:ip=192.0.2.7"}},
		"a crowd of neighbours": {func(c *leveled) {
			for i := range 50 {
				c.requests(5, fmt.Sprint("192.0.2.", i), "")
			}
		}, []string{"addr:v4%2F24=192.0.2.0%2F24"}},
		"a crowd of networks": {func(c *leveled) {
			for i := range 50 {
				c.requests(5, fmt.Sprintf("192.0.%d.1", i), "")
			}
		}, []string{"addr:v4%2F16=192.0.0.0%2F16"}},
		"hot neighbours": {func(c *leveled) {
			for i := range 5 {
				c.requests(120, fmt.Sprint("192.0.2.", i), "")
			}
		}, []string{"addr:v4%2F24=192.0.2.0%2F24"}},
		"two addresses far apart": {func(c *leveled) {
			c.requests(120, "192.0.2.7", "")
			c.requests(120, "198.51.100.7", "")
		}, []string{"addr:ip=192.0.2.7", "addr:ip=198.51.100.7"}},
		"one address with one q": {func(c *leveled) { c.requests(120, "192.0.2.7", "phone") }, []string{"addr:ip=192.0.2.7&q=phone"}},
		"neighbours with one q": {func(c *leveled) {
			for i := range 50 {
				c.requests(5, fmt.Sprint("192.0.2.", i), "phone")
			}
		}, []string{"q=phone&addr:v4%2F24=192.0.2.0%2F24"}},
		"one q from everywhere": {func(c *leveled) {
			for i := range 50 {
				c.requests(5, fmt.Sprintf("%d.0.2.1", i+1), "phone")
			}
		}, []string{"q=phone"}},
		"one address with any q": {func(c *leveled) {
			for i := range 50 {
				c.requests(5, "192.0.2.7", fmt.Sprint(i))
			}
		}, []string{"addr:ip=192.0.2.7"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newLeveled("addr:v4/24", "addr:ip", "q", "addr:v4/16")
			c.Advance(c.now)
			test.requests(c)
			c.pass(300 * time.Millisecond)
			if got := c.listed(); !slices.Equal(got, test.want) {
				t.Errorf("listed %q, want %q", got, test.want)
			}
		})
	}
}

// The more general keys of a key are the subsets of its parameters, with its address or with a
// wider level of it.
func TestWiderKeysAreMoreGeneral(t *testing.T) {
	rule := leveledRule("addr:ip", "addr:v4/24", "addr:v6/48", "q")
	r := newRuleWatch(rulePlace{rule: &rule, budget: 1 << 20, late: time.Second})
	for text, want := range map[string][]string{
		"GET /s?addr:ip=192.0.2.7&q=1":                 {"GET /s?addr:ip=192.0.2.7", "GET /s?addr:v4%2F24=192.0.2.0%2F24", "GET /s?q=1", "GET /s?q=1&addr:v4%2F24=192.0.2.0%2F24"},
		"GET /s?addr:ip=2001%3Adb8%3A1%3A2%3A%3A%2F64": {"GET /s?addr:v6%2F48=2001%3Adb8%3A1%3A%3A%2F48"},
		"GET /s?addr:v4%2F24=192.0.2.0%2F24":           nil,
		"GET /s?q=1&addr:v4%2F24=192.0.2.0%2F24":       {"GET /s?addr:v4%2F24=192.0.2.0%2F24", "GET /s?q=1"},
		"GET /s?addr:ip=nonsense":                      nil,
		"GET /s?ip=192.0.2.7&q=1":                      {"GET /s?ip=192.0.2.7", "GET /s?q=1"},
		"GET /a%20b?addr:ip=192.0.2.7&q=%C3%A9%26":     {"GET /a%20b?addr:ip=192.0.2.7", "GET /a%20b?addr:v4%2F24=192.0.2.0%2F24", "GET /a%20b?q=%C3%A9%26", "GET /a%20b?q=%C3%A9%26&addr:v4%2F24=192.0.2.0%2F24"},
	} {
		var got []string
		for _, g := range r.generals(&watched{text: text, rule: r}) {
			got = append(got, g.text)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
