package limitertest

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// TestFull runs the random schedules of the suite that bound the admissions, while other keys
// ask, on a backend that has room for few keys. Such a backend may refuse more than the quota
// says, but must never admit more. New's backend should have room for two keys.
func TestFull(t *testing.T, c Config) {
	c.full = true
	t.Run("one quota", func(t *testing.T) { testFull(t, &c) })
	t.Run("quotas in any mix", func(t *testing.T) { testMixes(t, &c) })
	t.Run("a clock that jumps back and forth", func(t *testing.T) { testClockBounds(t, &c) })
}

var fullQuotas = []variant{
	{"token_bucket", drawBucket(rules.TokenBucket, mixRates)},
	{"gcra", drawBucket(rules.GCRA, mixRates)},
	{"leaky_bucket", drawBucket(rules.LeakyBucket, mixRates)},
	{"warm-up", drawWarmUp},
	{"fixed_window", drawMixWindow(rules.FixedWindow)},
	{"fixed_window, calendar", func(t *rapid.T) rules.Quota {
		return natural(rapid.Int64Range(1, 12).Draw(t, "limit"), rules.CalendarMinute)
	}},
	{"sliding_log", drawMixWindow(rules.SlidingLog)},
	{"sliding_blocks", func(t *rapid.T) rules.Quota {
		q := drawMixWindow(rules.SlidingBlocks)(t)
		q.Blocks = 6
		return q
	}},
	{"penalty", func(t *rapid.T) rules.Quota {
		q := drawMixed(t)
		q.Penalty = sec
		return q
	}},
}

func testFull(t *testing.T, c *Config) {
	for _, v := range fullQuotas {
		t.Run(v.name, func(t *testing.T) {
			check(t, c, func(rt *rapid.T) {
				q := v.draw(rt).WithDefaults()
				q.CountDenied = false
				k := newWorldIn(t, rt, c).key(q)
				k.loose = true
				s := newSchedule(rt, c, k.quota, []limiter.OpKind{limiter.Take, limiter.AtMost, limiter.Reserve})
				m := &mix{T: rt, modelKey: k, quotas: []*rules.Quota{k.quota}}
				for range s.askCount() {
					k.sleep(s.pause())
					if rapid.Bool().Draw(rt, "others come") {
						k.askOthers(k.quota)
					}
					op := k.op
					op.Request = s.drawAsk()
					op.Keep = 0
					if r := k.askBackend(op.Request); r.Taken > 0 {
						m.log = append(m.log, &admission{used: used{k.now() + r.Delay, r.Taken, r.Delay > 0}, asked: k.now(), family: familyOf(k.quota), undo: op})
					}
				}
				m.checkFamily(familyOf(k.quota), m.quotas)
				if q.Algorithm == rules.FixedWindow && q.Calendar == "" {
					return // a key that was evicted may begin with the window of another
				}
				var log []used
				for _, a := range m.log {
					log = append(log, a.used)
				}
				withinBounds(rt, k.quota, s.tick, log)
			})
		})
	}
}
