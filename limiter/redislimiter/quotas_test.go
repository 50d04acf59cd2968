package redislimiter

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter"
)

// Two instances with different quotas for one key, as in any rolling deploy, admit what
// the larger one allows; with different algorithms what both do.
func TestQuotasSideBySide(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	of := func(a hotparam.Algorithm, n, burst int64, per time.Duration) *hotparam.Quota {
		return quota(hotparam.Quota{Algorithm: a, Rate: rate(n, per), Burst: burst})
	}
	warm := func(n int64) *hotparam.Quota {
		return quota(hotparam.Quota{Rate: rate(n, time.Hour), Burst: n, WarmUp: time.Second, ColdFactor: 2})
	}
	for _, test := range []struct {
		name string
		a, b *hotparam.Quota
		most int64
	}{
		{"rates", of(hotparam.TokenBucket, 10, 10, time.Hour), of(hotparam.TokenBucket, 12, 12, time.Hour), 12},
		{"bursts", of(hotparam.TokenBucket, 10, 10, time.Hour), of(hotparam.TokenBucket, 10, 100, time.Hour), 100},
		{"bursts, told as gcra", of(hotparam.TokenBucket, 10, 10, time.Hour), of(hotparam.GCRA, 10, 100, time.Hour), 100},
		{"units far apart", of(hotparam.TokenBucket, 3, 3, 365*24*time.Hour), of(hotparam.TokenBucket, 7, 7, 24*time.Hour), 7},
		{"leaky buckets", of(hotparam.LeakyBucket, 10, 10, time.Hour), of(hotparam.LeakyBucket, 12, 12, time.Hour), 12},
		{"warm-ups", warm(10), warm(12), 12},
		{"logs", of(hotparam.SlidingLog, 10, 0, time.Hour), of(hotparam.SlidingLog, 12, 0, time.Hour), 12},
		{"logs of other spans", of(hotparam.SlidingLog, 10, 0, time.Hour), of(hotparam.SlidingLog, 12, 0, 2*time.Hour), 12},
		{"blocks", of(hotparam.SlidingBlocks, 10, 0, time.Hour), of(hotparam.SlidingBlocks, 12, 0, time.Hour), 12},
		{"fixed windows", of(hotparam.FixedWindow, 10, 0, time.Hour), of(hotparam.FixedWindow, 12, 0, time.Hour), 12},
		{"fixed windows of other spans", of(hotparam.FixedWindow, 10, 0, time.Hour), of(hotparam.FixedWindow, 12, 0, 2*time.Hour), 12},
		{"bucket and log", of(hotparam.TokenBucket, 10, 10, time.Hour), of(hotparam.SlidingLog, 12, 0, time.Hour), 22},
		{"bucket and leaky bucket", of(hotparam.TokenBucket, 10, 10, time.Hour), of(hotparam.LeakyBucket, 12, 12, time.Hour), 22},
		{"warm-up and bucket", of(hotparam.TokenBucket, 10, 10, time.Hour), warm(12), 22},
		{"log and window", of(hotparam.SlidingLog, 10, 0, time.Hour), of(hotparam.FixedWindow, 12, 0, time.Hour), 22},
		{"blocks and log", of(hotparam.SlidingBlocks, 10, 0, time.Hour), of(hotparam.SlidingLog, 12, 0, time.Hour), 22},
	} {
		t.Run(test.name, func(t *testing.T) {
			clock := handAt(1_700_000_000 * time.Second)
			client := storeClient(t, testenv.Redis(t).Addr(), nil)
			one, two := storeOf(t, client, clock.of), storeOf(t, client, clock.of)
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

// A full line stays full when the quota is changed: by a reload, or since another number
// of instances shares it.
func TestLineOutlivesItsQuota(t *testing.T) {
	const wait = 5 * time.Second
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	for _, q := range []hotparam.Quota{
		{Rate: rate(10, time.Second)},
		{Algorithm: hotparam.LeakyBucket, Rate: rate(10, time.Second)},
		{Algorithm: hotparam.LeakyBucket, Rate: rate(10, time.Second), Shape: true, Burst: 60},
		{Algorithm: hotparam.SlidingLog, Rate: rate(10, time.Second)},
		{Algorithm: hotparam.SlidingBlocks, Rate: rate(10, time.Second)},
		{Algorithm: hotparam.FixedWindow, Rate: rate(10, time.Second)},
	} {
		for _, next := range []int64{11, 5, 20} {
			t.Run(fmt.Sprintf("%s shape %t to %d/s", q.Algorithm, q.Shape, next), func(t *testing.T) {
				clock := handAt(1_700_000_000 * time.Second)
				s := storeOf(t, client, func(c *Config) { c.Namespace = namespaceOf(t); clock.of(c) })
				old, changed := quota(q), q
				changed.Rate.N = next
				reserved := func(q *hotparam.Quota) (n int64) {
					for ; n < 1000; n++ {
						r := ask(t, s, limiter.Op{Quota: q, Key: "key", Ask: limiter.Ask{Kind: limiter.Reserve, N: 1, Within: wait}})
						if !r.Allowed {
							break
						}
					}
					return n
				}
				first := reserved(old)
				more := reserved(quota(changed))
				// Of the rate above the old one's, and its burst, there may be more.
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

// mix is a key asked for by several stores, each with a quota of its own that changes,
// and what was admitted. It judges by arithmetic of its own.
type mix struct {
	*rapid.T
	clock  *hand
	stores []*Store
	quotas []*hotparam.Quota
	log    []admitted
}

type admitted struct {
	decided, used time.Duration
	n             int64
	op            limiter.Op // a Return of it
}

// run asks so often for something, at least as often as each window is long.
func (m *mix) run(longest time.Duration) {
	current := make([]*hotparam.Quota, len(m.stores))
	for i := range current {
		current[i] = rapid.SampledFrom(m.quotas).Draw(m.T, "quota")
	}
	for range rapid.IntRange(20, 60).Draw(m.T, "asks") {
		m.clock.pass(time.Duration(rapid.SampledFrom([]int64{0, 1, 1000, 100_000, 700_000, longest.Microseconds() / 8}).Draw(m.T, "pause")) * time.Microsecond)
		i := rapid.IntRange(0, len(m.stores)-1).Draw(m.T, "store")
		if rapid.IntRange(0, 3).Draw(m.T, "reload") == 0 {
			current[i] = rapid.SampledFrom(m.quotas).Draw(m.T, "quota")
		}
		op := limiter.Op{Quota: current[i], Name: "limit", Key: "key", Ask: limiter.Ask{
			Kind:   rapid.SampledFrom([]limiter.Kind{limiter.Take, limiter.Take, limiter.AtMost, limiter.Reserve, limiter.Peek, limiter.Return}).Draw(m.T, "kind"),
			N:      rapid.Int64Range(1, 8).Draw(m.T, "n"),
			Within: rapid.SampledFrom([]time.Duration{0, 300 * time.Millisecond, 3 * time.Second}).Draw(m.T, "within"),
		}}
		if op.Kind == limiter.Return {
			m.cancel(m.stores[i])
			continue
		}
		if r := ask(m.T, m.stores[i], op); r.Taken > 0 {
			op.Ask = r.Return()
			m.log = append(m.log, admitted{m.clock.now(), m.clock.now() + r.Delay, r.Taken, op})
		}
		if m.quotas[0].Algorithm.Windowed() { // each quota still asks
			for _, q := range m.quotas {
				if r := take(m.T, m.stores[i], q, "key", 1); r.Taken > 0 {
					m.log = append(m.log, admitted{m.clock.now(), m.clock.now(), 1, limiter.Op{}})
				}
			}
		}
	}
}

// cancel gives back what is reserved and not yet used.
func (m *mix) cancel(s *Store) {
	for i, a := range m.log {
		if a.used > m.clock.now() {
			ask(m.T, s, a.op)
			m.log = append(m.log[:i], m.log[i+1:]...)
			return
		}
	}
}

// within fails if what was decided from one instant on, and used up to another, is more
// than most of the time between them.
func (m *mix) within(most func(time.Duration) float64) {
	for _, from := range m.log {
		for _, to := range m.log {
			var sum int64
			for _, a := range m.log {
				if a.decided >= from.decided && a.used <= to.used {
					sum += a.n
				}
			}
			if span := to.used - from.decided; span >= 0 && float64(sum) > most(span)+1e-6 {
				m.Fatalf("%d admitted in %v, want %.3f at most, of %s", sum, span, most(span), quotasTold(m.quotas))
			}
		}
	}
}

func quotasTold(list []*hotparam.Quota) (s string) {
	for _, q := range list {
		s += fmt.Sprintf("%s %s burst %d; ", q.Algorithm, q.Rate, q.Burst)
	}
	return s
}

// What blocks of one quota hold counts in the windows of each later one for as long as its
// newest take may be in them: also when a quota in between has shorter blocks, which these takes
// did not count in.
func TestBlocksOfLaterQuotas(t *testing.T) {
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	blocks := func(n int64, per time.Duration) *hotparam.Quota {
		return quota(hotparam.Quota{Algorithm: hotparam.SlidingBlocks, Rate: rate(n, per)})
	}
	later := [][]*hotparam.Quota{
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
			for range 17 { // each 50 ms, until a block of 100 ms before a second is over
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

// In any window a key's admissions are what the largest quota allows, whatever quotas ask
// for it, however often they change, and whatever is reserved and cancelled meanwhile.
func TestMixesOfQuotas(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	for name, client := range map[string]redis.UniversalClient{
		"single":  storeClient(t, testenv.Redis(t).Addr(), nil),
		"cluster": clusterClient(t, testenv.RedisCluster(t).Addrs()),
	} {
		for _, family := range []struct {
			name       string
			algorithms []hotparam.Algorithm
			shape      bool
			slides     bool // at any time: windows of several spans admit no more than one does
		}{
			{"buckets", []hotparam.Algorithm{hotparam.TokenBucket, hotparam.GCRA}, false, false},
			{"leaky", []hotparam.Algorithm{hotparam.LeakyBucket}, false, false},
			{"shaped", []hotparam.Algorithm{hotparam.LeakyBucket}, true, false},
			{"log", []hotparam.Algorithm{hotparam.SlidingLog}, false, true},
			{"blocks", []hotparam.Algorithm{hotparam.SlidingBlocks}, false, true},
			{"fixed", []hotparam.Algorithm{hotparam.FixedWindow}, false, false},
		} {
			t.Run(name+"/"+family.name, func(t *testing.T) {
				rapid.Check(t, func(rt *rapid.T) {
					m := &mix{T: rt, clock: handAt(1_700_000_000*time.Second + 123_457*time.Microsecond)}
					space := fmt.Sprint("mix", mixedKeys.Add(1))
					for range 3 {
						m.stores = append(m.stores, storeOf(t, client, func(c *Config) { c.Namespace = space; m.clock.of(c) }))
					}
					spans, most := []time.Duration{time.Second, 3 * time.Second, 7 * time.Second}, 3
					if family.slides { // more than there are frames
						spans, most = append(spans, 1700*time.Millisecond, 11*time.Second), 6
					}
					for range rapid.IntRange(2, most).Draw(rt, "quotas") {
						m.quotas = append(m.quotas, quota(hotparam.Quota{
							Algorithm: rapid.SampledFrom(family.algorithms).Draw(rt, "algorithm"),
							Rate:      rate(rapid.Int64Range(1, 20).Draw(rt, "rate"), rapid.SampledFrom(spans).Draw(rt, "per")),
							Burst:     rapid.Int64Range(1, 30).Draw(rt, "burst"),
							Shape:     family.shape,
						}))
					}
					longest := time.Hour
					for _, q := range m.quotas {
						longest = min(longest, q.Rate.Per)
					}
					m.run(longest)
					m.within(mostOf(m.quotas))
				})
			})
		}
	}
}

// mostOf is what the largest of some quotas of one family allows in a span of time: any
// span for buckets and logs; less a block for blocks; a window at either end for fixed
// windows, which for several spans lie where they like.
func mostOf(quotas []*hotparam.Quota) func(time.Duration) float64 {
	var burst, perSecond float64
	times := 1.0
	for i, q := range quotas {
		span := q.Rate.Per
		if q.Algorithm == hotparam.SlidingBlocks {
			span -= span / time.Duration(q.Blocks)
		}
		if q.Algorithm == hotparam.FixedWindow && (i == 0 || span != quotas[0].Rate.Per) {
			times++
		}
		burst = max(burst, float64(q.Burst))
		perSecond = max(perSecond, float64(q.Rate.N)/span.Seconds())
	}
	return func(d time.Duration) float64 { return times*burst + perSecond*(d+time.Microsecond).Seconds() }
}
