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

// testTogether checks that asks with Together take all or nothing, in calls that may have other
// asks. The reference is a model of each key that executes only the denials of a denied request.
func testTogether(t *testing.T, c *Config) {
	if !c.Together {
		t.Skip("the backend does not know Together")
	}
	check(t, c, func(rt *rapid.T) {
		r := &togetherRun{T: rt, world: newWorldIn(t, rt, c)}
		for i := range rapid.IntRange(2, 4).Draw(rt, "limits") {
			q := drawAny(rt)
			q.Penalty = rapid.SampledFrom([]time.Duration{0, 0, 0, sec}).Draw(rt, "penalty")
			q = q.WithDefaults()
			if !exact(&q, c.tick()) || len(c.kinds(&q)) <= int(limiter.Forget) {
				return
			}
			r.begins = r.begins || q.Algorithm == rules.FixedWindow
			r.limits = append(r.limits, &keyHistory{modelKey: r.keyNamed(fmt.Sprint("limit ", i), "key", q)})
		}
		for range rapid.IntRange(1, 12).Draw(rt, "requests") {
			r.request()
			r.sleep(newSchedule(rt, c, r.limits[0].quota, nil).pause())
		}
	})
}

// keyHistory is a key and everything executed on it, so that its model can be rebuilt.
type keyHistory struct {
	*modelKey
	done []executed
}

type executed struct {
	instant time.Duration
	ask     limiter.Request
}

// replay returns a model on which everything has been executed.
func (h *keyHistory) replay() *keyModel {
	m := newModel(h.quota, h.config.tick())
	for _, e := range h.done {
		m.do(e.instant, e.ask)
	}
	return m
}

// add executes ask and returns the model's result.
func (h *keyHistory) add(ask limiter.Request) limiter.Result {
	r := h.replay().do(h.now(), ask)
	h.done = append(h.done, executed{h.now(), ask})
	return r
}

// togetherRun is a schedule of requests, each to several limits.
type togetherRun struct {
	*rapid.T
	*world
	limits []*keyHistory
	begins bool           // whether a take begins a window, which its return does not end
	held   []togetherTake // the takes of the latest request that passed, in order
}

type togetherTake struct {
	limit *keyHistory
	got   limiter.Result
	ideal limiter.Result
}

func (r *togetherRun) Fatalf(format string, args ...any) { r.T.Fatalf(format, args...) }
func (r *togetherRun) Helper()                           { r.T.Helper() }

// request sends one request, or returns the takes of the latest one.
func (r *togetherRun) request() {
	if len(r.held) > 0 && rapid.IntRange(0, 3).Draw(r.T, "return") == 0 {
		r.giveBack()
		return
	}
	var limits []*keyHistory
	var ops []limiter.Op
	for range rapid.IntRange(1, 5).Draw(r.T, "ops") {
		h := rapid.SampledFrom(r.limits).Draw(r.T, "limit")
		if slices.Contains(limits, h) && (r.begins || h.quota.CountDenied || h.quota.Penalty > 0) {
			continue // the effects of a denial by the request itself would remain
		}
		op := h.op
		op.Request = newSchedule(r.T, r.config, h.quota, []limiter.OpKind{limiter.Take, limiter.Take, limiter.Take, limiter.Peek, limiter.AtMost, limiter.Reserve, limiter.Charge}).drawAsk()
		op.Together = rapid.IntRange(0, 4).Draw(r.T, "together") > 0
		limits, ops = append(limits, h), append(ops, op)
	}
	r.judge(limits, ops, r.send(ops))
}

func (r *togetherRun) send(ops []limiter.Op) []limiter.Result {
	results := make([]limiter.Result, len(ops))
	if err := r.backend.(limiter.Batcher).DoAll(context.Background(), ops, results); err != nil {
		r.Fatalf("%v", err)
	}
	return results
}

func (r *togetherRun) giveBack() {
	var ops []limiter.Op
	for _, h := range slices.Backward(r.held) {
		if log, ok := h.limit.replay().ideal.(*idealLog); ok && log.clipped || h.limit.quota.CountDenied {
			continue // the remainder of each take is unknown
		}
		op := h.limit.op
		op.Request = h.got.Return()
		ops = append(ops, op)
		h.limit.add(returnOf(h.got.Taken, h.ideal))
	}
	r.send(ops)
	r.held = nil
	r.compare("a return")
}

// judge compares the results of a request with the reference.
func (r *togetherRun) judge(limits []*keyHistory, ops []limiter.Op, results []limiter.Result) {
	together := func(i int) bool { return ops[i].Together && ops[i].Kind <= limiter.Reserve }
	want := make([]limiter.Result, len(ops))
	for i, h := range limits {
		if !together(i) {
			want[i] = h.add(ops[i].Request)
		}
	}
	// All asks that are Together are tried on separate models, one after the other.
	trials, denied := map[*keyHistory]*keyModel{}, false
	for i, h := range limits {
		if together(i) {
			if trials[h] == nil {
				trials[h] = h.replay()
			}
			want[i] = trials[h].do(r.now(), ops[i].Request)
			denied = denied || !want[i].Allowed
		}
	}
	r.held = nil
	for i, h := range limits {
		what := fmt.Sprintf("op %d of %d, %s of %s", i, len(ops), describeRequest(ops[i].Request), describeQuota(h.quota))
		twice := slices.Index(limits, h) != i || slices.Contains(limits[i+1:], h)
		switch alone := h.replay().do(r.now(), ops[i].Request); {
		case !together(i):
		case !denied:
			h.add(ops[i].Request)
			if want[i].Taken > 0 {
				r.held = append(r.held, togetherTake{h, results[i], want[i]})
			}
		case twice:
			if results[i].Taken != 0 {
				r.Fatalf("%s: %s, and the request is denied", what, describeResult(results[i]))
			}
			continue
		case !alone.Allowed:
			want[i] = h.add(ops[i].Request)
		default: // as a Peek, with the Delay that it would have
			want[i] = h.replay().do(r.now(), peek(0))
			want[i].Delay = alone.Delay
		}
		got := results[i]
		if got.Mark, got.Receipt = want[i].Mark, want[i].Receipt; got != want[i] {
			r.Fatalf("%s at %v, denied %v:\n got %s\nwant %s", what, r.now()-epoch, denied, describeResult(got), describeResult(want[i]))
		}
	}
	r.compare("a request")
}

// compare fails unless each key equals its model.
func (r *togetherRun) compare(after string) {
	for _, h := range r.limits {
		got, want := h.askBackend(peek(0)), h.replay().do(r.now(), peek(0))
		if got.Mark, got.Receipt = want.Mark, want.Receipt; got != want {
			r.Fatalf("after %s at %v: %s\n has %s\nwant %s", after, r.now()-epoch, describeQuota(h.quota), describeResult(got), describeResult(want))
		}
	}
}
