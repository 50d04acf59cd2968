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

// Packets state, by bucket, the sums of the loose counts before them, for rules with a jump. A
// flush has at most one statement, and only if there were such counts. All packets name the
// statement that they follow.
func TestPacketsStateBucketSums(t *testing.T) {
	jump := rules.Threshold{Kind: rules.Jump, Factor: rules.NewFraction(8, 1), Rate: rules.Rate{N: 400, Per: time.Second}}.WithDefaults()
	ruleset := &rules.Rules{Namespace: "shop", Rules: []rules.Rule{
		{ID: "a", Hot: []rules.Threshold{over(40, time.Second)}}, {ID: "b", Hot: []rules.Threshold{jump}},
	}}
	out := &packets{}
	sink, err := New(Config{Rules: ruleset, Sender: out, Instance: "api-1"})
	if err != nil {
		t.Fatal(err)
	}
	c := newCollector(t, collector.Config{Sink: sink, Rules: ruleset, Budget: 60})
	rng, now := rand.New(rand.NewPCG(1, 1)), time.Unix(1_700_000_000, 0)
	var sums [wire.Buckets]uint32
	all, stated, at, statements, number := 0, 0, now.Add(-time.Hour), 0, uint64(wire.BucketsLeap)
	for round := range 200 {
		few := round > 100 // and then a trickle
		for range rng.IntN(300) {
			if few && rng.IntN(100) > 0 {
				continue
			}
			member := fmt.Appendf(nil, "%c GET /s?q=%d", "ab"[rng.IntN(2)], rng.IntN(rng.IntN(400)+1))
			c.Add(rules.Hash(member), member, 1)
		}
		out.all = nil
		c.Flush(t.Context(), now)
		inFlush := 0
		for _, packet := range out.all {
			lines := strings.Split(packet, "\n")
			m, err := wire.ParseMeta([]byte(lines[0]))
			if err != nil {
				t.Fatal(err)
			}
			var got [wire.Buckets]uint32
			n, states, ok := wire.ParseBuckets(&got, m.Buckets, wire.JumpsMark(ruleset))
			if states {
				number++
				inFlush++
				statements++
				stated, at = all, now
			}
			if !ok || n != number || states && got != sums || inFlush > 1 {
				t.Fatalf("%q: statement %d and the %dth of a flush, want sums %v", lines[0], n, inFlush, sums)
			}
			for _, line := range lines[1:] {
				if _, _, booked := wire.CutAccount([]byte(line)); booked {
					continue
				}
				l, err := wire.ParseLine([]byte(line))
				if err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				if text, _ := wire.Plain.AppendDecoded(nil, l.Key); string(l.Prefix) == "shop.b" {
					sums[wire.BucketOf(wire.BucketHash(text), m.Incarnation)] += uint32(l.N)
					all += int(l.N)
				}
			}
		}
		if now = now.Add(base.FlushInterval); now.Sub(at) > bucketsEvery+base.FlushInterval && all-stated >= bucketsFrom {
			t.Fatalf("flush %d: %d counts were sent since the sums were stated", round, all-stated)
		}
	}
	if statements < 20 || statements > 130 || all == 0 {
		t.Errorf("%d statements for %d counts", statements, all)
	}
}

// After a change of the rules, no statement is compared with an earlier one.
func TestBucketSumsOfOtherRules(t *testing.T) {
	var b bucketSums
	b.setRules(1)
	now := time.Unix(1_700_000_000, 0)
	b.append(nil, now)
	before := b.number
	for _, mark := range []uint32{2, 1} {
		b.setRules(mark)
		if _, states := b.append(nil, now); !states {
			t.Error("the sums are not stated for other rules")
		}
	}
	if b.number < before+2*wire.BucketsLeap {
		t.Errorf("statement %d follows %d", b.number, before)
	}
}
