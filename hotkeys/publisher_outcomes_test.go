package hotkeys

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// countedOutcomes has the same outcomes for every key, and counts the questions.
type countedOutcomes struct{ asked int }

func (c *countedOutcomes) Of(rules.Key, time.Time) *published.FleetOutcomes {
	c.asked++
	return &published.FleetOutcomes{Outcomes: published.Outcomes{Refused: 61_200}}
}

func (c *countedOutcomes) Inherit([]published.Hot) {}

// Entries have their outcomes when they are written. A change of one key among many asks for those of
// this key alone.
func TestOutcomesOfWrittenEntries(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		ctx := context.Background()
		outcomes := new(countedOutcomes)
		p := testPublisher(t, client, func(c *PublisherConfig) { c.Outcomes = outcomes })
		var many []published.Hot
		for i := range 100 {
			many = append(many, hot(text(i), 200, 50))
		}
		p.Publish(hots(many...))
		must(t, p.settle(ctx))
		outcomes.asked = 0
		p.Publish(hots(hot(text(100), 200, 50)))
		must(t, p.settle(ctx))
		if outcomes.asked != 1 {
			t.Errorf("one key of 101 is new, and outcomes are looked up %d times", outcomes.asked)
		}
		outcomes.asked = 0
		must(t, p.renew(ctx))
		if outcomes.asked != 101 {
			t.Errorf("a renewal of 101 keys looks up %d", outcomes.asked)
		}
		infos := client.HGetAll(ctx, "hotparam:{shop}:info").Val()
		for member, info := range infos {
			if !strings.Contains(info, `"refused":61200`) {
				t.Errorf("%s: %s", member, info)
			}
		}
		if len(infos) != 101 {
			t.Errorf("%d entries", len(infos))
		}
	})
}
