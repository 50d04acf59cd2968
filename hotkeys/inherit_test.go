package hotkeys

import (
	"context"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
)

// A process that begins to publish an owner passes on the published keys, keeps them, and cools the
// keys that it is asked to cool.
func TestInherit(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		ctx := context.Background()
		former := testPublisher(t, client, func(*PublisherConfig) {})
		former.Publish(hots(hot(text(1), 212, 50), hot(text(2), 300, 60)))
		must(t, former.settle(ctx))

		var inherited []string
		p := testPublisher(t, client, func(c *PublisherConfig) {
			c.Inherit = func(keys []published.Hot) {
				for _, h := range keys {
					inherited = append(inherited, h.Text)
				}
			}
		})
		must(t, p.settle(ctx))
		slices.Sort(inherited)
		if want := []string{hot(text(1), 1, 1).Text, hot(text(2), 1, 1).Text}; !slices.Equal(inherited, want) {
			t.Fatalf("inherited %q, want %q", inherited, want)
		}
		wantInRedis(t, client, map[string]int64{text(1): 50, text(2): 60})
		if s := p.Stats(); s.Keys != 2 || s.Takeovers != 0 {
			t.Errorf("a first claim: %+v", s)
		}
		p.Publish(cools(hot(text(2), 300, 60)))
		must(t, p.settle(ctx))
		wantInRedis(t, client, map[string]int64{text(1): 50})
	})
}

// After a takeover the standby's detector also decides about a key that has cooled here. It may
// still be hot by another threshold, whose whole window only the former holder counted.
func TestInheritAtATakeover(t *testing.T) {
	ctx := context.Background()
	clock := newLeaseClock(t)
	client := testClient(t, "redis://"+clock.Addr())
	holder, standby := leased(t, client), leased(t, client)
	inherited := 0
	standby.cfg.Inherit = func(keys []published.Hot) { inherited += len(keys) }
	holder.Publish(hots(hot(text(1), 100, 50)))
	must(t, holder.resume(ctx))
	must(t, standby.resume(ctx))
	standby.Publish(hots(hot(text(1), 100, 50)))
	standby.Publish(cools(hot(text(1), 100, 50)))
	clock.forward(DefaultLease)
	must(t, standby.keepClaim(ctx))
	must(t, standby.settle(ctx))
	if inherited != 1 {
		t.Errorf("inherited %d keys, want the one that is published", inherited)
	}
	wantInRedis(t, client, map[string]int64{text(1): 50})
}
