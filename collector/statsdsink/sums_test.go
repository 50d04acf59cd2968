package statsdsink

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// Packets state the sums of the packets before them: for each rule, once a flush, and for groups.
func TestPacketsTellSums(t *testing.T) {
	share := rules.Threshold{Kind: rules.Share, Factor: rules.Percent(50), Rate: rules.Rate{N: 500, Per: time.Second}}.WithDefaults()
	ruleset := &rules.Rules{Namespace: "shop", Rules: []rules.Rule{
		{ID: "static"}, {ID: "a", Hot: []rules.Threshold{over(40, time.Second)}}, {ID: "b", Hot: []rules.Threshold{share}},
	}}
	out := &packets{}
	sink, err := New(Config{Rules: ruleset, Sender: out, Instance: "api-1"})
	if err != nil {
		t.Fatal(err)
	}
	c := newCollector(t, collector.Config{Sink: sink, Rules: ruleset, Budget: 60})
	rng, now := rand.New(rand.NewPCG(1, 1)), time.Unix(1_700_000_000, 0)
	sums, heldBack, told := make([]uint64, 4), uint64(0), 0
	for range 50 {
		for range rng.IntN(300) {
			member := fmt.Appendf(nil, "%c GET /s?%c=%d", "ab"[rng.IntN(2)], "pqr"[rng.IntN(3)], rng.IntN(rng.IntN(400)+1))
			c.Add(rules.Hash(member), member, 1)
		}
		out.all = nil
		c.Flush(t.Context(), now)
		now = now.Add(base.FlushInterval)
		for i, packet := range out.all {
			lines := strings.Split(packet, "\n")
			m, err := wire.ParseMeta([]byte(lines[0]))
			if err != nil || m.Groups != wire.GroupsMark(ruleset) || m.Sums.HeldBack != heldBack {
				t.Fatalf("%q, want %d of groups before it: %v", lines[0], heldBack, err)
			}
			if (len(m.Rules) > 0) != (i == 0) {
				t.Fatalf("packet %d of a flush is %q", i, lines[0])
			}
			got := make([]uint64, 4)
			if i == 0 && (!wire.ParseRuleSums(got, m.Rules, wire.RulesMark(ruleset)) || fmt.Sprint(got) != fmt.Sprint(sums)) {
				t.Fatalf("%q tells %d, want %d", lines[0], got, sums)
			}
			for _, line := range lines[1:] {
				if h, err := wire.ParseHeldBack([]byte(line)); err == nil {
					heldBack += uint64(h.N)
					told++
					continue
				}
				rest, _, booked := wire.CutAccount([]byte(line))
				l, err := wire.ParseLine(rest)
				if err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				at := 2 * strings.Index("ab", strings.TrimPrefix(string(l.Prefix), "shop."))
				if booked {
					at++
				}
				sums[at] += uint64(l.N)
			}
		}
	}
	if !testing.Short() && (told == 0 || sums[0] == 0 || sums[1] == 0 || sums[2] == 0) {
		t.Errorf("%d lines of groups, sums of %d: the test tests too little", told, sums)
	}
}
