package limitertest

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// testTwins checks that a request to several limits at once has the same effect as separate asks.
// Each limit has a twin under another name, which is asked on its own. If a limit denies the
// request, the twins of the others only peek. Permits are returned in any order, and quotas change.
// After each step a limit and its twin must have equal states.
func testTwins(t *testing.T, c *Config) {
	if !c.Together {
		t.Skip("the backend does not know Together")
	}
	check(t, c, func(rt *rapid.T) {
		r := &twinRun{T: rt, world: newWorldIn(t, rt, c)}
		for i := range rapid.IntRange(2, 4).Draw(rt, "limits") {
			var quotas []*rules.Quota
			draw := rapid.SampledFrom([]func(*rapid.T) rules.Quota{drawAny, drawWarmUp, drawBucket(rules.TokenBucket, mixRates)}).Draw(rt, "quotas of")
			for range rapid.IntRange(1, 3).Draw(rt, "quotas") {
				q := draw(rt)
				q.Penalty = rapid.SampledFrom([]time.Duration{0, 0, sec}).Draw(rt, "penalty")
				q = q.WithDefaults()
				for _, kind := range []limiter.OpKind{limiter.Take, limiter.Peek, limiter.AtMost, limiter.Reserve, limiter.Return} {
					if !c.supports(&q, kind) {
						return
					}
				}
				if quotas = append(quotas, &q); q.Algorithm.Windowed() {
					break // a window shows for a while which quotas have asked
				}
			}
			r.limits = append(r.limits, &twins{name: fmt.Sprint("limit ", i), quotas: quotas})
		}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			r.step()
		}
	})
}

type twins struct {
	name   string
	quotas []*rules.Quota
}

// op returns an ask of a limit, or of its twin.
func (l *twins) op(twin string, q *rules.Quota, ask limiter.Request) limiter.Op {
	return limiter.Op{Quota: q, Name: l.name + twin, Key: "key", Request: ask}
}

// twinTake is a take that a limit and its twin granted.
type twinTake struct {
	limit     *twins
	quota     *rules.Quota
	one, twin limiter.Result
}

type twinRun struct {
	*rapid.T
	*world
	limits []*twins
	held   []twinTake
}

func (r *twinRun) Fatalf(format string, args ...any) { r.T.Fatalf(format, args...) }
func (r *twinRun) Helper()                           { r.T.Helper() }

func (r *twinRun) step() {
	if rapid.IntRange(0, 2).Draw(r.T, "time passes") == 0 {
		r.sleep(newSchedule(r.T, r.config, r.limits[0].quotas[0], nil).pause())
	}
	if len(r.held) > 0 && rapid.IntRange(0, 2).Draw(r.T, "return") == 0 {
		i := rapid.IntRange(0, len(r.held)-1).Draw(r.T, "which take")
		h := r.held[i]
		r.held = append(r.held[:i], r.held[i+1:]...)
		r.world.do(h.limit.op("", h.quota, h.one.Return()))
		r.world.do(h.limit.op(" twin", h.quota, h.twin.Return()))
	} else {
		r.request()
	}
	for _, l := range r.limits {
		q := rapid.SampledFrom(l.quotas).Draw(r.T, "quota")
		one, twin := r.world.do(l.op("", q, peek(0))), r.world.do(l.op(" twin", q, peek(0)))
		if !r.alike(q, one, twin) {
			r.Fatalf("at %v: %s\n    has %s\nits twin %s", r.now()-epoch, describeQuota(q), describeResult(one), describeResult(twin))
		}
	}
}

// alike reports whether the results are equal, except for the times of a bucket that warms up,
// which are computed in floating point.
func (r *twinRun) alike(q *rules.Quota, one, twin limiter.Result) bool {
	if q.WarmUp > 0 {
		for _, times := range [][2]*time.Duration{{&one.ResetAfter, &twin.ResetAfter}, {&one.RetryAfter, &twin.RetryAfter}, {&one.Delay, &twin.Delay}} {
			if (*times[0] - *times[1]).Abs() <= warmUpTolerance(r.config.tick()) {
				*times[0] = *times[1]
			}
		}
	}
	return one == twin
}

// request sends one request to some of the limits, and its expected effects to the twins.
func (r *twinRun) request() {
	var asked []*twins
	var ops []limiter.Op
	for _, l := range r.limits {
		if rapid.IntRange(0, 3).Draw(r.T, "leave out") == 0 {
			continue
		}
		q := rapid.SampledFrom(l.quotas).Draw(r.T, "quota")
		ask := newSchedule(r.T, r.config, q, []limiter.OpKind{limiter.Take, limiter.Take, limiter.Peek, limiter.AtMost, limiter.Reserve}).drawAsk()
		ask.Together = true
		asked, ops = append(asked, l), append(ops, l.op("", q, ask))
	}
	run := togetherRun{T: r.T, world: r.world}
	results := run.send(ops)
	denied := false
	for i := range results {
		denied = denied || !results[i].Allowed
	}
	for i, l := range asked {
		ask := ops[i].Request
		if denied && results[i].Allowed {
			ask = peek(ask.N) // an ask adopts its quota, whatever its result
		}
		twin := r.world.do(l.op(" twin", ops[i].Quota, ask))
		one := results[i]
		if denied && one.Taken > 0 {
			r.Fatalf("%s of %s: %s, and the request is denied", describeRequest(ops[i].Request), describeQuota(ops[i].Quota), describeResult(one))
		}
		if denied && one.Allowed {
			continue
		}
		if one.Taken > 0 {
			r.held = append(r.held, twinTake{l, ops[i].Quota, one, twin})
		}
		if one.Mark, one.Receipt = twin.Mark, twin.Receipt; !r.alike(ops[i].Quota, one, twin) {
			r.Fatalf("%s of %s at %v:\n     got %s\nits twin %s", describeRequest(ops[i].Request), describeQuota(ops[i].Quota), r.now()-epoch, describeResult(one), describeResult(twin))
		}
	}
}
