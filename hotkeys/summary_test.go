package hotkeys

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

// The summaries of all owners and parts are read as one, and expire with their owner.
func TestSummaries(t *testing.T) {
	t.Parallel()
	client := testClient(t, testenv.Redis(t).URL())
	ctx := t.Context()
	near := func(q string, ratio float64) published.Summary {
		return published.Summary{
			Near:    []published.Hot{{Key: rules.Key{Rule: "r", Text: q}, Ratio: ratio, Cause: published.Cause{Rate: rules.Rate{N: 5, Per: time.Second}}}},
			Traffic: []published.Traffic{{Rule: "r", Route: "GET /s", Rate: 10, Keys: 2}},
		}
	}
	publisher := func(owner string) *Publisher {
		p, err := NewPublisher(client, PublisherConfig{Namespace: testNamespace, Owner: owner, Timeout: patience})
		must(t, err)
		return p
	}
	one, two := publisher("one"), publisher("two")
	if s, err := ReadSummary(ctx, client, testNamespace); err != nil || len(s.Near)+len(s.Traffic) != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	one.Summary(0, near("a", 0.2))
	one.Summary(1, near("b", 0.4))
	one.Summary(1, near("c", 0.6))
	two.Summary(0, near("d", 0.5))
	two.Summary(1, near("\xff", 0.9)) // cannot be published
	for _, p := range []*Publisher{one, two} {
		must(t, p.renew(ctx))
	}
	s, err := ReadSummary(ctx, client, testNamespace)
	if err != nil || len(s.Near) != 3 || s.Near[0].Text != "c" || s.Near[1].Text != "d" || s.Near[2].Text != "a" {
		t.Errorf("%+v, %v", s.Near, err)
	}
	if len(s.Traffic) != 1 || s.Traffic[0].Rate != 40 || s.Traffic[0].Keys != 8 {
		t.Errorf("%+v", s.Traffic)
	}
	if ttl := client.PTTL(ctx, summaryKey(testLayout, "one")).Val(); ttl <= 0 || ttl > one.cfg.BeatTTL {
		t.Errorf("it lasts %v", ttl)
	}
	must(t, client.HSet(ctx, summaryKey(testLayout, "two")+"x", "foreign", 1).Err())
	must(t, client.Del(ctx, summaryKey(testLayout, "two")).Err())
	must(t, client.HSet(ctx, summaryKey(testLayout, "two"), "foreign", 1).Err())
	if s, err := ReadSummary(ctx, client, testNamespace); err != nil || len(s.Near) != 2 {
		t.Errorf("with a foreign value: %+v, %v", s.Near, err)
	}
}
