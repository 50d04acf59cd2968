package redislimiter

import (
	"fmt"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// Two instances have different quotas for one key, as in any rolling deployment. With one algorithm
// they admit what the larger quota allows, and with different algorithms the sum of both.
func TestQuotasSideBySide(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	of := func(a rules.Algorithm, n, burst int64, per time.Duration) *rules.Quota {
		return quota(rules.Quota{Algorithm: a, Rate: rate(n, per), Burst: burst})
	}
	warm := func(n int64) *rules.Quota {
		return quota(rules.Quota{Rate: rate(n, time.Hour), Burst: n, WarmUp: time.Second, ColdFactor: 2})
	}
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	for _, test := range []struct {
		name string
		a, b *rules.Quota
		most int64
	}{
		{"rates", of(rules.TokenBucket, 10, 10, time.Hour), of(rules.TokenBucket, 12, 12, time.Hour), 12},
		{"bursts", of(rules.TokenBucket, 10, 10, time.Hour), of(rules.TokenBucket, 10, 100, time.Hour), 100},
		{"bursts, told as gcra", of(rules.TokenBucket, 10, 10, time.Hour), of(rules.GCRA, 10, 100, time.Hour), 100},
		{"units far apart", of(rules.TokenBucket, 3, 3, 365*24*time.Hour), of(rules.TokenBucket, 7, 7, 24*time.Hour), 7},
		{"leaky buckets", of(rules.LeakyBucket, 10, 10, time.Hour), of(rules.LeakyBucket, 12, 12, time.Hour), 12},
		{"warm-ups", warm(10), warm(12), 12},
		{"logs", of(rules.SlidingLog, 10, 0, time.Hour), of(rules.SlidingLog, 12, 0, time.Hour), 12},
		{"logs of other spans", of(rules.SlidingLog, 10, 0, time.Hour), of(rules.SlidingLog, 12, 0, 2*time.Hour), 12},
		{"blocks", of(rules.SlidingBlocks, 10, 0, time.Hour), of(rules.SlidingBlocks, 12, 0, time.Hour), 12},
		{"fixed windows", of(rules.FixedWindow, 10, 0, time.Hour), of(rules.FixedWindow, 12, 0, time.Hour), 12},
		{"fixed windows of other spans", of(rules.FixedWindow, 10, 0, time.Hour), of(rules.FixedWindow, 12, 0, 2*time.Hour), 12},
		{"bucket and log", of(rules.TokenBucket, 10, 10, time.Hour), of(rules.SlidingLog, 12, 0, time.Hour), 22},
		{"bucket and leaky bucket", of(rules.TokenBucket, 10, 10, time.Hour), of(rules.LeakyBucket, 12, 12, time.Hour), 22},
		{"warm-up and bucket", of(rules.TokenBucket, 10, 10, time.Hour), warm(12), 22},
		{"log and window", of(rules.SlidingLog, 10, 0, time.Hour), of(rules.FixedWindow, 12, 0, time.Hour), 22},
		{"blocks and log", of(rules.SlidingBlocks, 10, 0, time.Hour), of(rules.SlidingLog, 12, 0, time.Hour), 22},
	} {
		t.Run(test.name, func(t *testing.T) {
			clock := handAt(1_700_000_000 * time.Second)
			own := func(c *Config) { c.Namespace = namespaceOf(t); clock.of(c) }
			one, two := storeOf(t, client, own), storeOf(t, client, own)
			var sum int64
			for range 500 {
				sum += take(t, one, test.a, "key", 1).Taken + take(t, two, test.b, "key", 1).Taken
				clock.pass(time.Millisecond)
			}
			if sum > test.most || test.a.WarmUp+test.b.WarmUp == 0 && sum < test.most {
				t.Errorf("%d admitted of 1000 in half a second, want %d", sum, test.most)
			}
		})
	}
}

// A full line stays full when its quota changes, by a reload or because another number of instances
// shares it.
func TestLineOutlivesItsQuota(t *testing.T) {
	const wait = 5 * time.Second
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	for _, q := range []rules.Quota{
		{Rate: rate(10, time.Second)},
		{Algorithm: rules.LeakyBucket, Rate: rate(10, time.Second)},
		{Algorithm: rules.LeakyBucket, Rate: rate(10, time.Second), Shape: true, Burst: 60},
		{Algorithm: rules.SlidingLog, Rate: rate(10, time.Second)},
		{Algorithm: rules.SlidingBlocks, Rate: rate(10, time.Second)},
		{Algorithm: rules.FixedWindow, Rate: rate(10, time.Second)},
	} {
		for _, next := range []int64{11, 5, 20} {
			t.Run(fmt.Sprintf("%s shape %t to %d/s", q.Algorithm, q.Shape, next), func(t *testing.T) {
				clock := handAt(1_700_000_000 * time.Second)
				s := storeOf(t, client, func(c *Config) { c.Namespace = namespaceOf(t); clock.of(c) })
				old, changed := quota(q), q
				changed.Rate.N = next
				reserved := func(q *rules.Quota) (n int64) {
					for ; n < 1000; n++ {
						r := ask(t, s, limiter.Op{Quota: q, Key: "key", Request: limiter.Request{Kind: limiter.Reserve, N: 1, Within: wait}})
						if !r.Allowed {
							break
						}
					}
					return n
				}
				first := reserved(old)
				more := reserved(quota(changed))
				// A higher rate and a larger burst leave room for that many more.
				if room := max(0, quota(changed).Burst-old.Burst) + max(0, next-10)*int64(wait/time.Second); more > room {
					t.Errorf("%d reserved within %v, and %d more after the change; want %d at most", first, wait, more, room)
				}
				if again := reserved(old); again > 0 {
					t.Errorf("%d more after the change back", again)
				}
			})
		}
	}
}

// Takes in blocks of one quota count in the windows of each later quota for as long as the newest
// of them may be in those windows. This holds even if a quota in between has shorter blocks, in
// which these takes did not count.
func TestBlocksOfLaterQuotas(t *testing.T) {
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	blocks := func(n int64, per time.Duration) *rules.Quota {
		return quota(rules.Quota{Algorithm: rules.SlidingBlocks, Rate: rate(n, per)})
	}
	later := [][]*rules.Quota{
		{blocks(1, time.Second)},
		{blocks(1, 3*time.Second), blocks(1, time.Second)},
		{blocks(1, 3*time.Second), blocks(1, 1700*time.Millisecond), blocks(1, time.Second)},
		{ // more than there are frames
			blocks(1, 5*time.Second), blocks(1, 3*time.Second), blocks(1, 2300*time.Millisecond),
			blocks(1, 1700*time.Millisecond), blocks(1, 1300*time.Millisecond), blocks(1, time.Second),
		},
	}
	for i, list := range later {
		for offset := time.Duration(0); offset < 700*time.Millisecond; offset += 50 * time.Millisecond {
			clock := handAt(1_700_000_000*time.Second + offset)
			s := storeOf(t, client, func(c *Config) {
				c.Namespace = fmt.Sprintf("%s-%d-%d", namespaceOf(t), i, offset.Milliseconds())
				clock.of(c)
			})
			if r := take(t, s, blocks(2, 7*time.Second), "key", 2); r.Taken != 2 {
				t.Fatalf("%d taken of 2", r.Taken)
			}
			for range 17 { // each 50 ms, until one block of 100 ms before the end of a second
				for _, q := range list {
					if r := take(t, s, q, "key", 1); r.Taken > 0 {
						t.Errorf("%d later quotas, %v into the second: %s admits 1 more %v after 2", len(list), offset, q.Rate, clock.now()-1_700_000_000*time.Second-offset)
					}
				}
				clock.pass(50 * time.Millisecond)
			}
		}
	}
}
