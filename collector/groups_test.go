package collector

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// groupSums is a sink that sums the counts reported for each group as a receiver does: counts of
// the flush itself, and held-back counts.
type groupSums struct {
	CountsOnly
	told   map[string]int64
	broken string
	lines  int
}

func (g *groupSums) Send(_ context.Context, f Flush, counts []Count) (sent Sent) {
	for i := range counts {
		c := &counts[i]
		if !c.Start.IsZero() {
			if !c.Start.Before(f.Start) {
				g.broken = fmt.Sprintf("a part begins at %v, its flush at %v", c.Start, f.Start)
			}
			continue
		}
		name := string(base.AppendGroup(nil, c.Text, false))
		if base.IsAgain(c.Text) {
			name = string(c.Text)
		}
		g.told[name] += c.N
	}
	for i := range f.HeldBack {
		g.told[string(f.HeldBack[i].Group)] += f.HeldBack[i].N
	}
	g.lines += len(counts) + len(f.HeldBack)
	sent.Lines = int64(len(counts) + len(f.HeldBack))
	return sent
}
func (g *groupSums) Fit(text []byte) []byte { return text }
func (g *groupSums) Close() error           { return nil }

func (g *groupSums) Capabilities() Capabilities {
	return Capabilities{Accounts: true, Groups: true}
}

// Counts are held back, shed, or held for too long. At each flush all counts so far have been
// reported for their groups, once.
func TestGroupsAreToldAtOnce(t *testing.T) {
	share := rules.Threshold{Kind: rules.Share, Factor: rules.Percent(50), Rate: rules.Rate{N: 50, Per: time.Second}}.WithDefaults()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, least, most int) int { return rapid.IntRange(least, most).Draw(t, name) }
		groups, values := draw("groups", 1, 120), draw("values", 1, 2000)
		budget := draw("budget", 3, 200)
		sink := &groupSums{told: make(map[string]int64)}
		c, err := New(Config{Sink: sink, Rules: ruled(share), Budget: budget, MaxKeys: draw("table", 64, 4000), Urgent: -1})
		if err != nil {
			t.Fatal(err)
		}
		added, all := make(map[string]int64), int64(0)
		now := time.Unix(1_700_000_000, 0)
		for range draw("flushes", 1, 40) {
			early := draw("early", 0, 3) == 0
			for i := range draw("adds", 0, 600) {
				name := fmt.Sprintf("GET /s?p%d", i*i%groups)
				text := fmt.Sprintf("%s=%d", name, draw("value", 0, values))
				if i%17 == 0 {
					name = strings.Replace(name, "?", "?~again&", 1)
					text = name
				}
				added[name]++
				all++
				member := []byte("terms " + text)
				c.Add(rules.Hash(member), member, 1)
				if early && i == 100 {
					c.beginFlush(now, now)
					c.budget.beginInterval(c.lines)
					c.room(t.Context())
				}
			}
			sink.lines = 0
			c.Flush(t.Context(), now)
			if sink.lines > budget && !early {
				t.Fatalf("%d lines, the budget is %d", sink.lines, budget)
			}
			sum := int64(0)
			for name, n := range sink.told {
				sum += n
				isRest := strings.HasSuffix(name, wire.Rest)
				if n > added[name] && !isRest {
					t.Fatalf("%d told of %s, which counts %d", n, name, added[name])
				}
			}
			if sum != all-c.Stats().Dropped.Sum() || sink.broken != "" {
				t.Fatalf("%d told of all groups, %d were counted; %s", sum, all, sink.broken)
			}
			if sink.told[wire.Rest]+sink.told["~again&"+wire.Rest] == 0 && c.Stats().Dropped.Sum() == 0 {
				for name, n := range added {
					if sink.told[name] != n {
						t.Fatalf("%d told of %s, which counts %d", sink.told[name], name, n)
					}
				}
			}
			now = now.Add(time.Duration(draw("pause", 1, 12)) * base.FlushInterval)
			if draw("clock", 0, 30) == 0 {
				now = now.Add(-3 * time.Second)
			}
		}
	})
}

// The groups with the most counts have their own lines, even if there are many more groups.
func TestLargestGroupsAreTold(t *testing.T) {
	g := newGroups(&rules.Rule{ID: "r"})
	var told []HeldBack
	for round := range 3 {
		for i := range 200 {
			g.holdBack(fmt.Appendf(nil, "GET /s?flood%d=1", round*200+i), 1)
		}
		g.holdBack([]byte("GET /s?q=1"), 50)
		told = g.appendHeldBack(told[:0], 1000)
		if len(told) > wire.MaxGroups+leastGroups {
			t.Errorf("%d lines", len(told))
		}
	}
	if string(told[0].Group) != "GET /s?q" || told[0].N != 50 {
		t.Errorf("%d of %s is first", told[0].N, told[0].Group)
	}
	sum := int64(0)
	for _, x := range told {
		sum += x.N
	}
	if sum != 250 {
		t.Errorf("%d told, want 250", sum)
	}
}
