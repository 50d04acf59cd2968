package collector

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// accountSums is a sink whose receiver reads accounts and sums groups. It keeps the counts of each
// flush.
type accountSums struct {
	CountsOnly
	flushes [][]Count
}

func (s *accountSums) Send(_ context.Context, _ Flush, counts []Count) (sent Sent) {
	s.flushes = append(s.flushes, append([]Count(nil), counts...))
	return Sent{Lines: int64(len(counts)), Packets: 1}
}

func (s *accountSums) Fit(text []byte) []byte { return text }
func (s *accountSums) Close() error           { return nil }

func (s *accountSums) Capabilities() Capabilities {
	return Capabilities{Accounts: true, Groups: true}
}

// An account that is closed while repeats of it are due is not repeated either.
func TestAClosedAccountIsNotRepeated(t *testing.T) {
	ruleset := ruled(over(400, time.Second))
	out := &accountSums{}
	c := newCollector(t, Config{Sink: out, Rules: ruleset})
	member := []byte(ruleset.Rules[0].ID + " k")
	now := time.Unix(1_700_000_000, 0)
	c.Add(rules.Hash(member), member, 300)
	c.Flush(t.Context(), now) // then no key has lines for longer than an account is kept
	c.Add(rules.Hash(member), member, 1)
	for range 5 {
		now = now.Add(keepAccount)
		c.Flush(t.Context(), now)
	}
	for i, counts := range out.flushes[1:] {
		for _, count := range counts {
			if count.N == 0 {
				t.Errorf("flush %d repeats %+v", i+1, count)
			}
		}
	}
}

// Keys of a rule with a jump have accounts before they rise, up to a bound. Keys of other rules
// have none, and no key has one while counts are held back.
func TestColdKeysHaveAccounts(t *testing.T) {
	jump := rules.Threshold{Kind: rules.Jump, Factor: rules.NewFraction(8, 1), Rate: rules.Rate{N: 400, Per: time.Second}}.WithDefaults()
	for name, test := range map[string]struct {
		hot    rules.Threshold
		budget int
		want   uint64
	}{
		"jump":              {jump, -1, coldAccounts},
		"rate":              {over(400, time.Second), -1, 0},
		"jump and no lines": {jump, 100, 0},
	} {
		ruleset := ruled(test.hot)
		c := newCollector(t, Config{Sink: &accountSums{}, Rules: ruleset, Budget: test.budget})
		now := time.Unix(1_700_000_000, 0)
		for range 2 {
			for i := range 300 {
				member := fmt.Appendf(nil, "%s k%d", ruleset.Rules[0].ID, i)
				c.Add(rules.Hash(member), member, 1)
			}
			c.Flush(t.Context(), now)
			now = now.Add(base.FlushInterval)
		}
		if got := c.opened; got > test.want || test.want > 0 && got < test.want {
			t.Errorf("%s: %d accounts, want %d", name, got, test.want)
		}
	}
}

// A suspect has an account with the next flush, whether its counts are sent then or none ever came
// here. A candidate has one with its first line. From then on its lost counts are made up for.
func TestSuspectsHaveAnAccountAtOnce(t *testing.T) {
	jump := rules.Threshold{Kind: rules.Jump, Factor: rules.NewFraction(4, 1), Rate: rules.Rate{N: 100, Per: time.Second}}.WithDefaults()
	ruleset := ruled(jump)
	for _, urgent := range []time.Duration{-1, DefaultUrgent} {
		for _, seen := range []bool{false, true} {
			out := &accountSums{}
			c := newCollector(t, Config{Sink: out, Rules: ruleset, Urgent: urgent, Budget: 50})
			key := rules.Key{Rule: ruleset.Rules[0].ID, Text: "suspect"}
			add := func(text string, n uint64) {
				member := []byte(rules.Key{Rule: key.Rule, Text: text}.String())
				c.Add(rules.Hash(member), member, n)
			}
			now := time.Unix(1_700_000_000, 0)
			flush := func() map[string]Count {
				c.Flush(t.Context(), now)
				now = now.Add(base.FlushInterval)
				on := make(map[string]Count)
				for _, count := range out.flushes[len(out.flushes)-1] {
					if count.Account.Number > 0 {
						on[string(count.Text)] = count
					}
				}
				return on
			}
			for round := range 3 { // a flood, so that no cold key has an account
				for i := range 200 {
					add(fmt.Sprint("invented", 1000*round+i), 1)
				}
				flush()
			}
			c.Steer(published.Fleet{Instances: 10, Suspects: []rules.Key{{Rule: key.Rule, Text: "another"}}}, nil)
			flush() // repeats the accounts
			flush()
			c.Steer(published.Fleet{Instances: 10, Suspects: []rules.Key{key}}, nil)
			n := uint64(0)
			if seen {
				n = 1
				add(key.Text, n)
			}
			add("candidate", 30)
			on := flush()
			if x, ok := on[key.Text]; !ok || x.Account.Total != n || x.N != int64(n) {
				t.Errorf("urgent %v, seen %v: the suspect's line is %+v", urgent, seen, x)
			}
			if x, ok := on["candidate"]; !ok || x.Account.Total != 30 {
				t.Errorf("urgent %v: the candidate's line is %+v", urgent, x)
			}
		}
	}
}
