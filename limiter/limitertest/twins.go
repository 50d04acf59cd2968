package limitertest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// testTogether checks that a request to several limits at once has the same effect as separate asks
// and, if the backend supports that, takes from all or none. Each limit has a twin under another
// name, which is asked on its own. If a limit denies the request, the twins of the others only peek.
// The call may have other asks, and several of one limit. Permits are returned in any order, or
// quotas change: what a Return restores after that depends on whether the backend has dropped a state
// that was that of a new key. After each step a limit and its twin must have equal states.
func testTogether(t *testing.T, c *Config) {
	if _, ok := newWorld(t, c).backend.(limiter.Batcher); !ok {
		t.Skip("the backend executes one ask at a time")
	}
	check(t, c, func(rt *rapid.T) {
		r := &twinRun{T: rt, world: newWorldIn(t, rt, c), repeats: rapid.IntRange(0, 2).Draw(rt, "repeats") == 0}
		r.changes = !r.repeats && rapid.Bool().Draw(rt, "changes")
		for i := range rapid.IntRange(2, 4).Draw(rt, "limits") {
			l := &twins{name: fmt.Sprint("limit ", i), quotas: r.drawQuotas()}
			if l.quotas == nil {
				return
			}
			r.limits = append(r.limits, l)
		}
		for n := rapid.IntRange(1, 25).Draw(rt, "steps"); n > 0 && !r.over; n-- {
			r.step()
		}
	})
}

// drawQuotas returns the quotas of a limit, or nil if the backend does not support them.
func (r *twinRun) drawQuotas() (quotas []*rules.Quota) {
	draws, most := []func(*rapid.T) rules.Quota{drawAny, drawWarmUp, drawBucket(rules.TokenBucket, mixRates)}, 1
	if r.changes {
		most = 3
	}
	if r.repeats {
		draws = []func(*rapid.T) rules.Quota{drawBucket(rules.GCRA, mixRates), drawBucket(rules.LeakyBucket, mixRates), drawWindow(rules.SlidingLog, false), drawBlocks(false)}
	}
	draw := rapid.SampledFrom(draws).Draw(r.T, "quotas of")
	for range rapid.IntRange(1, most).Draw(r.T, "quotas") {
		q := draw(r.T)
		if !r.repeats {
			q.Penalty = rapid.SampledFrom([]time.Duration{0, 0, sec}).Draw(r.T, "penalty")
		}
		q = q.WithDefaults()
		for kind := limiter.Take; kind <= limiter.Return; kind++ {
			if !r.config.supports(&q, kind) {
				return nil
			}
		}
		if quotas = append(quotas, &q); q.Algorithm.Windowed() {
			break // a window shows for a while which quotas have asked
		}
	}
	return quotas
}

type twins struct {
	name   string
	quotas []*rules.Quota
}

// op returns an ask of a limit, or of its twin.
func (l *twins) op(twin string, q *rules.Quota, ask limiter.Request) limiter.Op {
	return limiter.Op{Quota: q, Name: l.name + twin, Key: "key", Request: ask}
}

// twinAsk is an ask of a limit, and what it and its twin answered.
type twinAsk struct {
	limit     *twins
	quota     *rules.Quota
	ask       limiter.Request
	one, twin limiter.Result
}

func (a *twinAsk) together() bool { return a.ask.Together && a.ask.Kind <= limiter.Reserve }

type twinRun struct {
	*rapid.T
	*world
	limits []*twins
	held   []twinAsk // takes that a limit and its twin granted
	// repeats reports whether a request may ask a limit twice. The limits are then those of which a
	// request that denies itself leaves no trace: no window has begun, nothing is counted or locked,
	// no bucket is warm, and nothing is promised at another rate.
	repeats bool
	changes bool // whether quotas change
	over    bool // the next results may differ, by a rounding
}

func (r *twinRun) Fatalf(format string, args ...any) { r.T.Fatalf(format, args...) }
func (r *twinRun) Helper()                           { r.T.Helper() }

func (r *twinRun) step() {
	if rapid.IntRange(0, 2).Draw(r.T, "time passes") == 0 {
		r.sleep(newSchedule(r.T, r.config, r.limits[0].quotas[0], nil).pause())
	}
	if len(r.held) > 0 && !r.changes && rapid.IntRange(0, 2).Draw(r.T, "return") == 0 {
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
		r.compare(&twinAsk{limit: l, quota: q, ask: peek(0), one: r.world.do(l.op("", q, peek(0)))})
	}
}

// compare makes the ask of the twin, and fails unless it gets the same result.
func (r *twinRun) compare(a *twinAsk) {
	a.twin = r.world.do(a.limit.op(" twin", a.quota, a.ask))
	one, twin := a.one, a.twin
	one.Mark, one.Receipt = twin.Mark, twin.Receipt
	for _, times := range [][2]*time.Duration{{&one.ResetAfter, &twin.ResetAfter}, {&one.RetryAfter, &twin.RetryAfter}, {&one.Delay, &twin.Delay}} {
		off := (*times[0] - *times[1]).Abs()
		if off > 0 && off <= r.rounding(a.limit, a.quota) {
			*times[0] = *times[1]
			r.over = r.over || a.quota.WarmUp == 0
		}
	}
	if (r.over || a.quota.WarmUp > 0) && (one.Remaining-twin.Remaining)/2 == 0 { // between them is a whole permit
		one.Remaining = twin.Remaining
	}
	if one != twin {
		r.Fatalf("%s of %s at %v:\n     got %s\nits twin %s", describeRequest(a.ask), describeQuota(a.quota), r.now()-epoch, describeResult(one), describeResult(twin))
	}
	if a.twin.Taken > 0 {
		r.held = append(r.held, *a)
	}
}

// rounding returns how far the times of a limit and of its twin may be apart. Those of a warm-up are
// computed in floating point. A change of the rate rounds up what a state lacks, and a backend drops
// a state that is that of a new key when it likes to, and then rounds once less.
func (r *twinRun) rounding(l *twins, q *rules.Quota) time.Duration {
	shortest := q.Rate.Interval()
	for _, other := range l.quotas {
		shortest = min(shortest, other.Rate.Interval())
	}
	near := time.Duration(int64(len(l.quotas)-1) * 4 * q.Rate.Interval() / shortest)
	if q.WarmUp > 0 {
		near += warmUpTolerance(r.config.tick())
	}
	return near
}

// request sends one request to some of the limits, and its expected effects to the twins.
func (r *twinRun) request() {
	var asks []twinAsk
	for range rapid.IntRange(1, 5).Draw(r.T, "asks") {
		a := twinAsk{limit: rapid.SampledFrom(r.limits).Draw(r.T, "limit")}
		known := slices.IndexFunc(asks, func(o twinAsk) bool { return o.limit == a.limit })
		switch {
		case known < 0:
			a.quota = rapid.SampledFrom(a.limit.quotas).Draw(r.T, "quota")
		case !r.repeats:
			continue
		default:
			a.quota = asks[known].quota
		}
		a.ask = newSchedule(r.T, r.config, a.quota, []limiter.OpKind{limiter.Take, limiter.Take, limiter.Take, limiter.Peek, limiter.AtMost, limiter.Reserve, limiter.Charge}).drawAsk()
		a.ask.Together = r.config.Together && rapid.IntRange(0, 4).Draw(r.T, "together") > 0
		asks = append(asks, a)
	}
	denied := r.send(asks)
	for i := range asks {
		if a := &asks[i]; !a.together() { // these come first
			r.compare(a)
		}
	}
	explained := !denied
	for i := range asks {
		switch a := &asks[i]; {
		case !a.together():
		case denied && a.one.Taken > 0:
			r.Fatalf("%s of %s: %s, and the request is denied", describeRequest(a.ask), describeQuota(a.quota), describeResult(a.one))
		case !denied:
			r.compare(a)
		case r.isTwice(asks, i):
			explained = r.deniesAll(asks, a.limit) || explained
		case a.one.Allowed: // as by a Peek, with the Delay that it would have
			a.ask, a.one.Delay = peek(0), 0
			r.compare(a)
		default:
			r.compare(a)
			explained = true
		}
	}
	if !explained {
		r.Fatalf("a request is denied, and none of its asks is")
	}
}

// send sends the asks in one call, and reports whether one that is Together was denied.
func (r *twinRun) send(asks []twinAsk) (denied bool) {
	var ops []limiter.Op
	for _, a := range asks {
		ops = append(ops, a.limit.op("", a.quota, a.ask))
	}
	results := make([]limiter.Result, len(ops))
	if err := r.backend.(limiter.Batcher).DoAll(context.Background(), ops, results); err != nil {
		r.Fatalf("%v", err)
	}
	for i, got := range results {
		asks[i].one = got
		denied = denied || asks[i].together() && !got.Allowed
	}
	return denied
}

// isTwice reports whether another ask that is Together has the limit of the i-th.
func (r *twinRun) isTwice(asks []twinAsk, i int) bool {
	for k := range asks {
		if k != i && asks[k].together() && asks[k].limit == asks[i].limit {
			return true
		}
	}
	return false
}

// deniesAll reports whether the twin of a limit denies one of its asks, made one after the other.
// They are undone.
func (r *twinRun) deniesAll(asks []twinAsk, l *twins) (denied bool) {
	var undo []limiter.Op
	for _, a := range asks {
		if a.together() && a.limit == l {
			got := r.world.do(l.op(" twin", a.quota, a.ask))
			undo = append(undo, l.op(" twin", a.quota, got.Return()))
			denied = denied || !got.Allowed
		}
	}
	for _, op := range slices.Backward(undo) {
		r.world.do(op)
	}
	return denied
}
