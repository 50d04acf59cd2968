package statsdsink

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// accountsOf returns the accounts in the packets, by key, and the sums of counts with and without
// an account. It checks them against the sums that the packets state.
func accountsOf(t *testing.T, sent []string) (accounts map[string]wire.Account, booked, loose uint64) {
	t.Helper()
	accounts = make(map[string]wire.Account)
	for _, packet := range sent {
		lines := strings.Split(packet, "\n")
		m, err := wire.ParseMeta([]byte(lines[0]))
		if err != nil || !m.Sums.Stated {
			t.Fatalf("%q: %v", lines[0], err)
		}
		if m.Sums.Booked != booked || m.Sums.Loose != loose {
			t.Errorf("%q, want %d on accounts and %d on none before it", lines[0], booked, loose)
		}
		for _, line := range lines[1:] {
			rest, a, ok := wire.CutAccount([]byte(line))
			l, err := wire.ParseLine(rest)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			if !ok {
				loose += uint64(l.N)
				continue
			}
			booked += uint64(l.N)
			accounts[string(l.Key)] = a
		}
	}
	return accounts, booked, loose
}

// Candidates, hot keys and suspects are sent with their total so far, and again in the next
// flushes. Hot keys and suspects are also sent once a second, even if they had no counts. Other
// keys have no account.
func TestAccountsAreSent(t *testing.T) {
	ruleset := ruled(over(400, time.Second))
	out := &packets{}
	sink, err := New(Config{Rules: ruleset, Sender: out, Instance: "api-1"})
	if err != nil {
		t.Fatal(err)
	}
	c := newCollector(t, collector.Config{Sink: sink, Rules: ruleset})
	key := func(text string) rules.Key { return rules.Key{Rule: ruleset.Rules[0].ID, Text: text} }
	add := func(text string, n uint64) {
		member := []byte(key(text).String())
		c.Add(rules.Hash(member), member, n)
	}
	now, all := time.Unix(1_700_000_000, 0), []string(nil)
	flush := func() map[string]uint64 {
		now = now.Add(base.FlushInterval)
		out.all = nil
		c.Flush(t.Context(), now)
		all = append(all, out.all...)
		totals := make(map[string]uint64)
		for _, packet := range out.all {
			for _, line := range strings.Split(packet, "\n")[1:] {
				if rest, a, ok := wire.CutAccount([]byte(line)); ok {
					l, _ := wire.ParseLine(rest)
					totals[string(l.Key)] = a.Total
				}
			}
		}
		return totals
	}
	check := func(what string, want map[string]uint64) {
		t.Helper()
		if got := flush(); !maps.Equal(got, want) {
			t.Errorf("%s: sent %v, want %v", what, got, want)
		}
	}
	add("candidate", 150)
	add("cold", 1)
	check("a candidate", map[string]uint64{"candidate": 150})
	add("candidate", 5)
	add("cold", 1)
	check("once more", map[string]uint64{"candidate": 155})
	for i := range 3 {
		check(fmt.Sprint("repeat ", i+1), map[string]uint64{"candidate": 155})
	}
	check("silence", nil)
	c.Steer(published.Fleet{Instances: 1, Suspects: []rules.Key{key("suspect")}}, []rules.Key{key("candidate")})
	for range 3 {
		flush()
	}
	check("once hot", nil)
	sentTimes := make(map[string]int)
	for range 30 {
		for text := range flush() {
			sentTimes[text]++
		}
	}
	if sentTimes["candidate"] < 2 || sentTimes["suspect"] < 2 || sentTimes["candidate"] > 4 || len(sentTimes) != 2 {
		t.Errorf("sent in three seconds: %v, want each hot key and suspect once a second", sentTimes)
	}
	if _, booked, loose := accountsOf(t, all); booked != 155 || loose != 2 {
		t.Errorf("%d are on accounts and %d are not, want 155 and 2", booked, loose)
	}
}

// A foreign StatsD gets no accounts: its packets are unchanged.
func TestNoAccountsWithoutMeta(t *testing.T) {
	ruleset := ruled(over(400, time.Second))
	out := &packets{}
	sink, err := New(Config{Rules: ruleset, Sender: out, Instance: "api-1", NoMeta: true})
	if err != nil {
		t.Fatal(err)
	}
	c := newCollector(t, collector.Config{Sink: sink, Rules: ruleset})
	member := []byte(ruleset.Rules[0].ID + " k")
	c.Steer(published.Fleet{Instances: 1}, []rules.Key{{Rule: ruleset.Rules[0].ID, Text: "k"}})
	now := time.Unix(1_700_000_000, 0)
	for range 5 {
		c.Add(rules.Hash(member), member, 300)
		now = now.Add(base.FlushInterval)
		c.Flush(t.Context(), now)
		now = now.Add(base.FlushInterval)
		c.Flush(t.Context(), now)
	}
	for _, packet := range out.all {
		if strings.Contains(packet, "|k:") || strings.Contains(packet, ":0|") {
			t.Errorf("%q", packet)
		}
	}
	if len(out.all) != 5 {
		t.Errorf("%d packets, want one for each flush with counts", len(out.all))
	}
}
