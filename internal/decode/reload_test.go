package decode

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// A rule keeps its number while it counts the same, wherever it stands in the file. The number of
// a removed rule is not reused at once.
func TestNumbersStay(t *testing.T) {
	a, b, c := hotRule("a", 1, time.Second), hotRule("b", 1, time.Second), hotRule("c", 1, time.Second)
	numbers := func(n *Numbered) (all []int) {
		for i := range n.InOrder().Rules {
			all = append(all, n.NumberOf(n.InOrder().Rules[i].ID))
		}
		return all
	}
	n := NumberRules(testRules(a, b))
	inBytes := b
	inBytes.Count = rules.Bytes
	for i, test := range []struct {
		rules []rules.Rule
		want  []int
	}{
		{[]rules.Rule{b, a}, []int{1, 0}},
		{[]rules.Rule{c, b}, []int{2, 1}},       // not 0, which was a's
		{[]rules.Rule{a, c}, []int{0, 2}},       // which is free now
		{[]rules.Rule{inBytes, c}, []int{1, 2}}, // b was gone
		{[]rules.Rule{c, b}, []int{2, 0}},       // b counts otherwise
	} {
		if n = n.Next(testRules(test.rules...)); !slices.Equal(numbers(n), test.want) {
			t.Errorf("%d: numbers %v, want %v", i, numbers(n), test.want)
		}
	}
}

// Accounts of rules that stay continue, and still heal lost counts. Accounts of a new rule begin
// with it: counts from before the rule are not missing.
func TestAccountsThroughReload(t *testing.T) {
	const flush = 100 * time.Millisecond
	before, after := testRules(hotRule("custom", 1, time.Second)), decoderRules()
	for _, test := range []struct {
		name     string
		from, to *rules.Rules
		missing  string // at least, since counts of no rule are not subtracted
		want     string
	}{
		{"a rule that stays", after, testRules(hotRule("other", 1, time.Second), hotRule("terms", 9, time.Minute)), "9 booked", "healed 2 of a, 200ms to 200ms"},
		{"a rule that comes", before, after, "14 booked", ""},
		{"a rule that goes", after, before, "9 booked", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got heard
			d := NewDecoder(test.from, wire.Plain)
			packet := func(p string) { d.Packet([]byte(p), noon.Add(time.Second), &got) }
			packet(summed(1, 0, "0.0.0.0.0.0.0"))
			packet(summed(2, flush, "0.0.1.0.0.0.5f5e100", onAccount("a", 5, 1, 5)))
			d.Reload(NumberRules(test.from).Next(test.to))
			// Nine counts on accounts are missing, two of them on the account of a.
			packet(summed(4, 3*flush, "e.0.1.0.0.0.5f5e100", onAccount("a", 1, 1, 8)))
			healed, missing := "", false
			for _, line := range got {
				if strings.HasPrefix(line, "healed") {
					healed = line
				}
				missing = missing || strings.Contains(line, "0 loose, "+test.missing)
			}
			if healed != test.want || !missing {
				t.Errorf("told %q, want %q", got, test.want)
			}
		})
	}
}

// groupsHeard records whether groups have each count already.
type groupsHeard struct {
	heard
	groups []InGroup
}

func (g *groupsHeard) Count(c Count) { g.groups = append(g.groups, c.InGroup) }

// If a sender holds counts back while its own rules with a share, or ours, change, the totals of
// groups may or may not contain them. Before and after that the answer is certain.
func TestGroupsThroughReload(t *testing.T) {
	share := func(id string) rules.Rule {
		r := hotRule(id, 1, time.Second)
		r.Hot[0].Kind, r.Hot[0].Factor = rules.Share, rules.Percent(50)
		return r
	}
	first, second := testRules(share("terms")), testRules(share("terms"), share("more"))
	d, got := NewDecoder(first, wire.Plain), new(groupsHeard)
	seq := uint64(0)
	send := func(flush, age time.Duration, rules *rules.Rules, want InGroup) {
		t.Helper()
		seq++
		m := wire.Meta{Instance: []byte("i"), Incarnation: 1, Seq: seq, Start: noon.Add(flush - age).UnixNano(), Held: 5, Groups: wire.GroupsMark(rules)}
		m.Sums = wire.Sums{Stated: true, Loose: seq - 1, Age: int64(age)}
		d.Packet([]byte(string(wire.AppendMeta(nil, m))+"\nshop.terms.hot_param.a:1|c"), noon.Add(flush), got)
		if last := got.groups[len(got.groups)-1]; last != want {
			t.Errorf("after %v: %v, want %v", flush, last, want)
		}
	}
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	send(ms(100), 0, first, NotInGroup)
	send(ms(400), ms(200), first, CertainlyInGroup)
	d.Reload(NumberRules(first).Next(second))
	send(ms(500), ms(150), first, MaybeInGroup) // it may be in a total from before
	send(ms(900), ms(300), first, NotInGroup)   // totals of the former rules are not added
	send(ms(1000), ms(100), second, MaybeInGroup)
	send(ms(1400), ms(300), second, CertainlyInGroup)
	send(ms(1500), ms(300), first, MaybeInGroup) // its sender goes back
	send(ms(1900), ms(300), first, NotInGroup)
}
