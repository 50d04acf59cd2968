//go:build !race

// These tests use one goroutine and so have no races. They run only without the race detector.

package redislimiter

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// mix is a key asked for by several stores, each with its own changing quota, and the log of
// admissions. It checks them with its own arithmetic.
type mix struct {
	*rapid.T
	clock  *hand
	stores []*Store
	quotas []*rules.Quota
	log    []admitted
}

type admitted struct {
	decided, used time.Duration
	n             int64
	op            limiter.Op // a Return of it
}

// run makes random requests. Quotas of windows are all asked after each of them.
func (m *mix) run(longest time.Duration) {
	current := make([]*rules.Quota, len(m.stores))
	for i := range current {
		current[i] = rapid.SampledFrom(m.quotas).Draw(m.T, "quota")
	}
	for range rapid.IntRange(20, 60).Draw(m.T, "asks") {
		m.clock.pass(time.Duration(rapid.SampledFrom([]int64{0, 1, 1000, 100_000, 700_000, longest.Microseconds() / 8}).Draw(m.T, "pause")) * time.Microsecond)
		i := rapid.IntRange(0, len(m.stores)-1).Draw(m.T, "store")
		if rapid.IntRange(0, 3).Draw(m.T, "reload") == 0 {
			current[i] = rapid.SampledFrom(m.quotas).Draw(m.T, "quota")
		}
		op := limiter.Op{Quota: current[i], Name: "limit", Key: "key", Request: limiter.Request{
			Kind:   rapid.SampledFrom([]limiter.OpKind{limiter.Take, limiter.Take, limiter.AtMost, limiter.Reserve, limiter.Peek, limiter.Return}).Draw(m.T, "kind"),
			N:      rapid.Int64Range(1, 8).Draw(m.T, "n"),
			Within: rapid.SampledFrom([]time.Duration{0, 300 * time.Millisecond, 3 * time.Second}).Draw(m.T, "within"),
		}}
		if op.Kind == limiter.Return {
			m.cancel(m.stores[i])
			continue
		}
		if r := ask(m.T, m.stores[i], op); r.Taken > 0 {
			op.Request = r.Return()
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

// cancel returns a reservation that is not yet used.
func (m *mix) cancel(s *Store) {
	for i, a := range m.log {
		if a.used > m.clock.now() {
			ask(m.T, s, a.op)
			m.log = append(m.log[:i], m.log[i+1:]...)
			return
		}
	}
}

// within fails if more than most allows was admitted in any span, counted from the decision of the
// first admission to the use of the last.
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

func quotasTold(list []*rules.Quota) (s string) {
	for _, q := range list {
		s += fmt.Sprintf("%s %s burst %d; ", q.Algorithm, q.Rate, q.Burst)
	}
	return s
}

// In any window a key is admitted at most what the largest quota allows. This holds for any quotas
// of the key, any changes of them, and any reservations and cancellations in between.
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
			algorithms []rules.Algorithm
			shape      bool
			slides     bool // at any time: windows of several spans admit no more than one does
		}{
			{"buckets", []rules.Algorithm{rules.TokenBucket, rules.GCRA}, false, false},
			{"leaky", []rules.Algorithm{rules.LeakyBucket}, false, false},
			{"shaped", []rules.Algorithm{rules.LeakyBucket}, true, false},
			{"log", []rules.Algorithm{rules.SlidingLog}, false, true},
			{"blocks", []rules.Algorithm{rules.SlidingBlocks}, false, true},
			{"fixed", []rules.Algorithm{rules.FixedWindow}, false, false},
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
						m.quotas = append(m.quotas, quota(rules.Quota{
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

// mostOf returns what the largest of some quotas of one family allows in a span of time. Buckets
// and logs keep to it in any span. Blocks keep to it in a window less one block. Fixed windows may
// admit another window at either end, since windows of several spans are not aligned.
func mostOf(quotas []*rules.Quota) func(time.Duration) float64 {
	var burst, perSecond float64
	times := 1.0
	for i, q := range quotas {
		span := q.Rate.Per
		if q.Algorithm == rules.SlidingBlocks {
			span -= span / time.Duration(q.Blocks)
		}
		if q.Algorithm == rules.FixedWindow && (i == 0 || span != quotas[0].Rate.Per) {
			times++
		}
		burst = max(burst, float64(q.Burst))
		perSecond = max(perSecond, float64(q.Rate.N)/span.Seconds())
	}
	return func(d time.Duration) float64 { return times*burst + perSecond*(d+time.Microsecond).Seconds() }
}
