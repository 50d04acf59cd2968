package former

import (
	"fmt"
	"testing"

	"github.com/hotparam/hotparam/rules"
)

func testRules(ids ...string) *rules.Rules {
	r := &rules.Rules{}
	for _, id := range ids {
		r.Rules = append(r.Rules, rules.Rule{ID: id})
	}
	return r
}

// Removed rules stay known up to the bound, and the first removed are dropped first. A rule that
// returned and is removed again counts as newly removed.
func TestUpdate(t *testing.T) {
	t.Parallel()
	var l List
	known := make(map[string]int)
	set := func(ids ...string) {
		for _, id := range ids {
			known[id] = 1
		}
		Update(&l, known, testRules(ids...))
	}
	set("a", "b")
	set("b")
	set("a") // a returns, and b is removed
	for n := range Max {
		set(fmt.Sprint("rule", n))
	}
	if _, ok := known["b"]; ok || len(known) != Max+1 || len(l.ids) != Max {
		t.Fatalf("b known: %v; %d rules known, %d listed", ok, len(known), len(l.ids))
	}
	if _, ok := known["a"]; !ok {
		t.Error("a went before rules that were removed later: it was back in between")
	}
	set("other")
	if _, ok := known["a"]; ok {
		t.Error("a is known beyond the bound")
	}
}
