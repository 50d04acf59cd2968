package middleware

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// A spared key is counted and not limited, while other keys of the same requests are. A key that
// is no longer spared has its old bucket.
func TestASparedKeyIsCountedAndPasses(t *testing.T) {
	rule := hotRule(t, "r", "GET /s", byEach, 2, 2)
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
	hot := func(text string, usual, spared bool) published.Hot {
		return published.Hot{Key: rules.Key{Rule: "r", Text: text}, Low: 1, High: 1, Rate: 1, Mode: rules.ModeLimit, Usual: usual, Spared: spared}
	}
	const en, phone = "GET /s?lang=en", "GET /s?q=phone"
	replaceHot(f.hot, "", []published.Hot{hot(en, true, true), hot(phone, false, false)})
	check := func(query string, n int) (allowed int) {
		for range n {
			if f.Check(get("GET /s", "/s", query)).Allowed {
				allowed++
			}
		}
		return allowed
	}
	if n := check("lang=en&q=1", 10); n != 10 {
		t.Errorf("%d of 10 requests of a spared key pass", n)
	}
	if n := check("lang=en&q=phone", 10); n != 2 {
		t.Errorf("%d of 10 requests of a hot key beside it pass, want 2", n)
	}
	if n := f.keyCounts()["r "+en]; n != 20 {
		t.Errorf("%d of 20 requests are counted", n)
	}
	for _, key := range f.HotKeys() {
		if key.Text == en && (key.Passed != 20 || key.Refused != 0) {
			t.Errorf("the spared key passed %d and refused %d, want 20 and 0", key.Passed, key.Refused)
		}
	}
	f.HotSet().Update("", published.Change{Hot: []published.Hot{hot(en, true, false)}})
	if n := check("lang=en&q=1", 10); n != 2 {
		t.Errorf("%d of 10 requests pass when the key is usual and not spared, want 2", n)
	}
}

// Costs of a spared key's requests are counted and not charged.
func TestASparedKeyIsNotCharged(t *testing.T) {
	rule := hotRule(t, "r", "GET /s", byEach, 5, 5)
	rule.Count = rules.Units
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
	h := published.Hot{Key: rules.Key{Rule: "r", Text: "GET /s?lang=en"}, Low: 1, High: 1, Rate: 1, Mode: rules.ModeLimit, Usual: true, Spared: true}
	replaceHot(f.hot, "", []published.Hot{h})
	for range 10 {
		d, ticket := f.Begin(get("GET /s", "/s", "lang=en"))
		if !d.Allowed {
			t.Fatal("refused")
		}
		ticket.End(Cost{Units: 100, Time: time.Second})
	}
	if n := f.keyCounts()["r GET /s?lang=en"]; n != 1000 {
		t.Errorf("counted %d of 1000", n)
	}
	h.Spared = false
	f.HotSet().Update("", published.Change{Hot: []published.Hot{h}})
	if d, _ := f.Begin(get("GET /s", "/s", "lang=en")); !d.Allowed {
		t.Error("what passed while the key was spared is owed")
	}
}
