package wire_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

func TestRuleSumsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mark := rapid.Uint32Min(1).Draw(t, "mark")
		want := rapid.SliceOfN(rapid.Uint64(), 1, 2*wire.MaxRuleSums).Draw(t, "sums")
		text := wire.AppendRuleSums(nil, mark, want)
		m := wire.Meta{Instance: []byte("i"), Seq: 1, Held: 1, Rules: text}
		line := wire.AppendMeta(nil, m)
		read, err := wire.ParseMeta(line)
		if err != nil || string(read.Rules) != string(text) {
			t.Fatalf("%q reads %+v, %v", line, read, err)
		}
		got := make([]uint64, len(want))
		if !wire.ParseRuleSums(got, text, mark) || !slices.Equal(got, want) {
			t.Fatalf("%q reads %d, want %d", text, got, want)
		}
		if wire.ParseRuleSums(got, text, mark+1) || wire.ParseRuleSums(got[1:], text, mark) || wire.ParseRuleSums(append(got, 0), text, mark) {
			t.Fatalf("%q is read as of other rules", text)
		}
	})
}

func FuzzParseRuleSums(f *testing.F) {
	f.Add([]byte("beef.1.2"))
	f.Add([]byte("beef..2"))
	f.Fuzz(func(t *testing.T, text []byte) {
		sums := make([]uint64, 2)
		if wire.ParseRuleSums(sums, text, 0xbeef) {
			if again := make([]uint64, 2); !wire.ParseRuleSums(again, wire.AppendRuleSums(nil, 0xbeef, sums), 0xbeef) || !slices.Equal(sums, again) {
				t.Errorf("%q reads %d, and that %d", text, sums, again)
			}
		}
	})
}

func TestRulesMark(t *testing.T) {
	hot := []rules.Threshold{rules.NewThreshold(rules.Rate{N: 1, Per: time.Second})}
	mark := func(ids ...string) uint32 {
		ruleset := &rules.Rules{Namespace: "shop", Rules: []rules.Rule{{ID: "static"}}}
		for _, id := range ids {
			ruleset.Rules = append(ruleset.Rules, rules.Rule{ID: id, Hot: hot})
		}
		return wire.RulesMark(ruleset)
	}
	ab, same := mark("a", "b"), mark("a", "b")
	if ab == 0 || ab != same || ab == mark("b", "a") || ab == mark("a", "b", "c") {
		t.Error("the mark does not tell rules apart by their names and order")
	}
	if mark("a") != 0 || mark(make([]string, wire.MaxRuleSums+1)...) != 0 {
		t.Error("one rule needs no sums, and too many have none")
	}
}
