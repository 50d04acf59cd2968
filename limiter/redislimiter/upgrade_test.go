package redislimiter

import (
	"os"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// before asks as the version did whose scripts are in testdata/before: it had one state
// for a key, whatever the algorithm.
type before struct {
	*Store
	script *script
}

func newBefore(t *testing.T, s *Store) before {
	t.Helper()
	var parts []string
	for _, name := range []string{"head", "bucket", "warmup", "window", "run"} {
		text, err := os.ReadFile("testdata/before/" + name + ".lua")
		must(t, err)
		parts = append(parts, string(text))
	}
	return before{s, newScript(parts...)}
}

func (b before) take(t *testing.T, q *rules.Quota, key string, n int64) limiter.Result {
	t.Helper()
	p, err := newPlan(q)
	must(t, err)
	letter := p.letter
	if letter == 'W' {
		letter = 'w'
	}
	asked := appendNumbers([]byte{letter}, 0, float64(n), 0, 0, 0)
	asked = append(asked, p.numbers...)
	if p.script == windowScript {
		asked = p.appendPeriods(asked, b.now(nil), 0)
	}
	c := call{script: b.script, keys: []string{b.state("limit", key)}, args: []any{b.head(t.Context(), nil), string(asked)}}
	must(t, run(t.Context(), b.client, &c))
	answer, now, err := readReply(c.cmd.Val(), 1)
	must(t, err)
	r, _, _, err := answer.result(0, now, p.limit)
	must(t, err)
	return r
}

// While instances of this version and the one before run side by side a key keeps its
// limit, whichever came first. What warms up counts for each of them.
func TestRollingUpgrade(t *testing.T) {
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	for _, every := range everyQuota {
		for _, first := range []string{"old", "new"} {
			t.Run(every.name+", "+first+" first", func(t *testing.T) {
				clock := handAt(1_700_000_000*time.Second + 123_457*time.Microsecond)
				s := storeOf(t, client, func(c *Config) { c.Namespace = namespaceOf(t); clock.of(c) })
				old := newBefore(t, s)
				most := every.quota.Burst
				if every.quota.WarmUp > 0 {
					most *= 2
				}
				var sum int64
				for i := range 20 {
					if i > 0 || first == "old" {
						sum += old.take(t, every.quota, "key", 1).Taken
					}
					sum += take(t, s, every.quota, "key", 1).Taken
				}
				if sum > most || every.quota.WarmUp == 0 && sum < most {
					t.Errorf("%d admitted at one instant, want %d", sum, most)
				}
				clock.pass(denied(take(t, s, every.quota, "key", 1)))
				if r := take(t, s, every.quota, "key", 1); !r.Allowed {
					t.Errorf("a retry in time: %+v", r)
				}
			})
		}
	}
}

func denied(r limiter.Result) time.Duration { return r.RetryAfter }

// A state of the version before is taken over as it is.
func TestStateOfTheVersionBefore(t *testing.T) {
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	for _, every := range everyQuota {
		clock := handAt(1_700_000_000 * time.Second)
		s := storeOf(t, client, clock.of)
		old := newBefore(t, s)
		for old.take(t, every.quota, every.name, 1).Allowed {
		}
		want := old.take(t, every.quota, every.name, 1)
		got := take(t, s, every.quota, every.name, 1)
		if got.Allowed || got.Remaining != 0 || (got.RetryAfter-want.RetryAfter).Abs() > time.Microsecond {
			t.Errorf("%s: %+v, of the version before %+v", every.name, got, want)
		}
	}
}
