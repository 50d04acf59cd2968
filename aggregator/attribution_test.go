package aggregator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/rules"
)

// combined feeds a detector all combinations of each request's parameters.
type combined struct {
	*Detector
	out *recorder
	now time.Time
}

func newCombined(th rules.Threshold) *combined {
	out := newRecorder()
	rule := hotRule("r", 1, time.Second)
	rule.Hot, rule.By.Kind = []rules.Threshold{th}, rules.ByCombinations
	return &combined{NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out}), out, noon}
}

// requests counts n requests with these parameters, which are sorted.
func (c *combined) requests(n int64, params ...string) {
	for set := 1; set < 1<<len(params); set++ {
		var some []string
		for i, p := range params {
			if set&(1<<i) != 0 {
				some = append(some, p)
			}
		}
		if len(some) > 3 {
			continue
		}
		text := "GET /s?" + strings.Join(some, "&")
		c.Count(decode.Count{Hash: testHash(text), Text: []byte(text), N: n, When: c.now, Instance: "i"})
	}
}

// pass lets time pass, pane by pane.
func (c *combined) pass(d time.Duration) {
	for end := c.now.Add(d); c.now.Before(end); {
		c.now = c.now.Add(base.FlushInterval)
		c.Advance(c.now)
	}
}

func (c *combined) listed() []string {
	var texts []string
	for key := range c.out.hot() {
		texts = append(texts, strings.TrimPrefix(key.Text, "GET /s?"))
	}
	slices.Sort(texts)
	return texts
}

func TestTheMostGeneralKeyIsListed(t *testing.T) {
	th := rules.NewThreshold(rules.Rate{N: 100, Per: time.Second})
	for _, test := range []struct {
		name     string
		requests func(c *combined)
		want     string
		explains int
	}{
		{"over all pages", func(c *combined) {
			for page := range 10 {
				c.requests(120, fmt.Sprint("page=", page), "q=phone")
			}
		}, "[q=phone]", 10},
		{"one page", func(c *combined) { c.requests(120, "page=1", "q=phone") }, "[page=1&q=phone]", 0},
		{"one page, and little besides", func(c *combined) {
			c.requests(150, "page=1", "q=phone")
			c.requests(30, "page=2", "q=phone")
		}, "[page=1&q=phone]", 0},
		{"three that always come together", func(c *combined) { c.requests(120, "a=1", "b=2", "c=3") }, "[a=1&b=2&c=3]", 0},
		{"four: no key has them all", func(c *combined) { c.requests(120, "a=1", "b=2", "c=3", "d=4") }, "[a=1&b=2&c=3]", 0},
		{"alone", func(c *combined) { c.requests(120, "q=phone") }, "[q=phone]", 0},
		{"two", func(c *combined) {
			c.requests(120, "q=phone")
			c.requests(120, "q=tree")
		}, "[q=phone q=tree]", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCombined(th)
			c.Advance(c.now)
			test.requests(c)
			c.pass(300 * time.Millisecond)
			c.Refresh()
			if got := fmt.Sprint(c.listed()); got != test.want {
				t.Errorf("listed %v, want %v", got, test.want)
			}
			s := c.Stats()
			if s.Hot != int64(len(c.listed())) || s.Explained == 0 && test.explains > 0 {
				t.Errorf("figures %+v", s)
			}
			h := c.out.refresh[0][0]
			if h.Top == nil || h.Top.Explains != test.explains || len(h.Top.Instances) != 1 {
				t.Errorf("%s: %+v, want %d explained", h.Text, h.Top, test.explains)
			}
		})
	}
}

// A specific key that comes while a listed one explains it is never published.
func TestAnExplainedKeyIsNeverPublished(t *testing.T) {
	c := newCombined(rules.NewThreshold(rules.Rate{N: 100, Per: time.Second}))
	c.Advance(c.now)
	for range 100 {
		for page := range 10 {
			c.requests(12, fmt.Sprint("page=", page), "q=phone")
		}
		c.pass(50 * time.Millisecond)
	}
	if s := c.Stats(); s.Explained != 20 {
		t.Errorf("%d keys are explained, want those of ten pages, with and without the term", s.Explained)
	}
	for _, e := range c.out.events() {
		if strings.Contains(e, "&") {
			t.Errorf("told %q", e)
		}
	}
	if got := fmt.Sprint(c.listed()); got != "[q=phone]" {
		t.Errorf("listed %v", got)
	}
}

// As the traffic moves from all pages to one and back, the list follows, and
// does not flap at its edge.
func TestAttributionIsSteady(t *testing.T) {
	c := newCombined(rules.NewThreshold(rules.Rate{N: 100, Per: time.Second}))
	c.Advance(c.now)
	for i := range 1200 { // 200 a second on one page, and 95 to 105 on another
		c.requests(20, "page=1", "q=phone")
		c.requests(int64(9+i/10%2*2), "page=2", "q=phone")
		c.pass(base.FlushInterval)
	}
	settled := c.now.Add(-117 * time.Second) // early keys, published before their window was complete, have been corrected by then
	var late []string
	for _, change := range c.out.changes {
		for _, h := range change.Cool {
			if h.Until.After(settled) {
				late = append(late, h.Text)
			}
		}
	}
	if len(late) > 2 || len(c.out.events()) > 20 {
		t.Errorf("in two minutes these left the list: %q; all:\n%s", late, strings.Join(c.out.events(), "\n"))
	}
}

// Each hot key is listed, or is more general or more specific than a listed key, or has the same
// traffic as one. No listed key is more general than another listed key.
func TestAttributionCoversAllHotKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		th := rules.NewThreshold(rules.Rate{N: 50, Per: time.Second})
		th.Hold, th.CoolDown = 0, 0
		c := newCombined(th)
		c.Advance(c.now)
		for range rapid.IntRange(1, 30).Draw(t, "bursts") {
			var params []string
			for _, name := range []string{"a", "b", "c"} {
				if v := rapid.IntRange(0, 2).Draw(t, name); v > 0 {
					params = append(params, fmt.Sprint(name, "=", v))
				}
			}
			c.requests(rapid.Int64Range(1, 80).Draw(t, "n"), params...)
			c.pass(time.Duration(rapid.IntRange(0, 4).Draw(t, "panes")) * base.FlushInterval)
		}
		c.pass(base.FlushInterval)
		r := c.rules[0]
		listed := make(map[string]bool)
		for _, w := range r.hot {
			if w.listed {
				listed[w.text] = true
			}
		}
		if told := slices.Sorted(maps.Keys(listed)); fmt.Sprint(told) != fmt.Sprint(c.full()) {
			t.Fatalf("told %q, listed are %q", c.full(), told)
		}
		if len(r.hot) > 0 && len(listed) == 0 {
			t.Fatal("none is listed")
		}
		for _, w := range r.hot {
			for _, g := range r.generals(w) {
				if u := r.keys[g.text]; listed[g.text] && listed[w.text] && w.isHiddenBy(u) {
					t.Fatalf("listed are %s and the more general %s", w.text, g.text)
				}
			}
		}
	})
}

func (c *combined) full() []string {
	var texts []string
	for key := range c.out.hot() {
		texts = append(texts, key.Text)
	}
	slices.Sort(texts)
	return texts
}
