package limitertest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

const (
	us  = time.Microsecond
	ms  = time.Millisecond
	sec = time.Second
	day = 24 * time.Hour
)

// epoch is the time at which a world begins: Monday, 2 March 2026, 00:00 UTC.
const epoch = 1_772_409_600 * sec

func perSecond(n int64) rules.Rate { return rules.Rate{N: n, Per: time.Second} }

// failer has the common methods of testing.T and rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// world is a backend, its clock, and the keys that one case asks for.
type world struct {
	failer
	t       *testing.T
	config  *Config
	clock   atomic.Int64 // ns since the Unix epoch
	backend limiter.Backend
}

func newWorld(t *testing.T, c *Config) *world { return newWorldIn(t, t, c) }

// newWorldIn returns a world whose failures are reported by f.
func newWorldIn(t *testing.T, f failer, c *Config) *world {
	w := &world{failer: f, t: t, config: c}
	w.setClock(0)
	w.backend = c.New(t, w.now)
	return w
}

func (w *world) now() time.Duration { return time.Duration(w.clock.Load()) }

// setClock sets the clock to d after the epoch.
func (w *world) setClock(d time.Duration) { w.clock.Store(int64(epoch + d)) }

// sleep advances the clock.
func (w *world) sleep(d time.Duration) { w.clock.Add(int64(d)) }

// pairedResult is a backend's Result, together with the model's.
type pairedResult struct {
	limiter.Result
	ideal limiter.Result
}

// modelKey is a key of a world, with the model of its answers.
type modelKey struct {
	*world
	quota *rules.Quota
	op    limiter.Op
	model *keyModel
	loose bool // whether Results are not compared with the model's
}

// key returns a fresh key. The defaults of its quota are filled in.
func (w *world) key(q rules.Quota) *modelKey { return w.keyNamed("limit", "key", q) }

func (w *world) keyNamed(name, text string, q rules.Quota) *modelKey {
	w.Helper()
	q = q.WithDefaults()
	if err := q.Validate(); err != nil {
		w.Fatalf("the suite's own quota: %v", err)
	}
	return &modelKey{
		world: w, quota: &q, op: limiter.Op{Quota: &q, Name: name, Key: text},
		model: newModel(&q, w.config.tick()), loose: !exact(&q, w.config.tick()),
	}
}

// exact reports whether all instants of a quota are whole ticks, so that only the model's answers
// are right.
func exact(q *rules.Quota, tick time.Duration) bool {
	whole := func(d time.Duration, n int64) bool { return d%(time.Duration(n)*tick) == 0 }
	switch {
	case q.Burst == rules.Unlimited:
		return true
	case q.WarmUp > 0 || !whole(q.Penalty, 1):
		return false
	case q.Algorithm == rules.SlidingBlocks:
		return whole(q.Rate.Per, int64(q.Blocks))
	case q.Algorithm.Windowed():
		return whole(q.Rate.Per, 1)
	}
	return whole(q.Rate.Per, q.Rate.N)
}

// do asks, and fails unless every field of the answer equals the model's.
func (k *modelKey) do(ask limiter.Request) pairedResult { return k.both(ask, ask) }

// both asks the backend and the model, whose marks differ.
func (k *modelKey) both(ask, ideal limiter.Request) pairedResult {
	k.Helper()
	got := pairedResult{Result: k.askBackend(ask)}
	if k.loose {
		return got
	}
	now := k.now()
	got.ideal = k.model.do(now, ideal)
	want := got.ideal
	want.Mark, want.Receipt = got.Mark, got.Receipt // each uses its own
	if got.Result != want {
		k.Fatalf("%s at %v: %s\n got %s\nwant %s", describeQuota(k.quota), now-epoch, describeRequest(ask), describeResult(got.Result), describeResult(want))
	}
	return got
}

// askBackend asks the backend alone.
func (k *modelKey) askBackend(ask limiter.Request) limiter.Result {
	k.Helper()
	op := k.op
	op.Request = ask
	return k.world.do(op)
}

func (w *world) do(op limiter.Op) limiter.Result {
	w.Helper()
	if !w.config.supports(op.Quota, op.Kind) {
		w.t.Skipf("the backend does not support this: %s of %s", describeRequest(op.Request), describeQuota(op.Quota))
	}
	r, err := w.backend.Do(context.Background(), op)
	if err != nil {
		w.Fatalf("%s: %s: %v", describeQuota(op.Quota), describeRequest(op.Request), err)
	}
	return r
}

// returnOf returns the Request that gives n permits of r back.
func returnOf(n int64, r limiter.Result) limiter.Request {
	ask := r.Return()
	ask.N = n
	return ask
}

func take(n int64) limiter.Request { return limiter.Request{N: n} }
func peek(n int64) limiter.Request { return limiter.Request{Kind: limiter.Peek, N: n} }

func (k *modelKey) take(n int64) pairedResult { k.Helper(); return k.do(limiter.Request{N: n}) }
func (k *modelKey) peek(n int64) pairedResult {
	k.Helper()
	return k.do(limiter.Request{Kind: limiter.Peek, N: n})
}
func (k *modelKey) atMost(n int64) pairedResult {
	k.Helper()
	return k.do(limiter.Request{Kind: limiter.AtMost, N: n})
}
func (k *modelKey) charge(n int64) pairedResult {
	k.Helper()
	return k.do(limiter.Request{Kind: limiter.Charge, N: n})
}
func (k *modelKey) forget() pairedResult {
	k.Helper()
	return k.do(limiter.Request{Kind: limiter.Forget})
}
func (k *modelKey) takeKeep(n, keep int64) pairedResult {
	k.Helper()
	return k.do(limiter.Request{N: n, Keep: keep})
}

func (k *modelKey) reserve(n int64, within time.Duration) pairedResult {
	k.Helper()
	return k.do(limiter.Request{Kind: limiter.Reserve, N: n, Within: within})
}

func (k *modelKey) giveBack(n int64, a pairedResult) pairedResult {
	k.Helper()
	return k.both(returnOf(n, a.Result), returnOf(n, a.ideal))
}

// wantAllowed fails unless a was allowed at once with left permits remaining.
func (k *modelKey) wantAllowed(a pairedResult, left int64) {
	k.Helper()
	if !a.Allowed || a.Reason != rules.ReasonWithin || a.Remaining != left || a.RetryAfter != 0 || a.Delay != 0 {
		k.Fatalf("%s at %v: got %s, want it allowed with %d left", describeQuota(k.quota), k.now()-epoch, describeResult(a.Result), left)
	}
}

// wantDenied fails unless a was denied with the given retry.
func (k *modelKey) wantDenied(a pairedResult, left int64, retry time.Duration) {
	k.Helper()
	if a.Allowed || a.Reason != rules.ReasonLimited || a.Remaining != left || a.RetryAfter != retry || a.Taken != 0 {
		k.Fatalf("%s at %v: got %s, want it denied with %d left, for %v", describeQuota(k.quota), k.now()-epoch, describeResult(a.Result), left, retry)
	}
}

// wantDelayed fails unless a was allowed after a delay.
func (k *modelKey) wantDelayed(a pairedResult, delay time.Duration) {
	k.Helper()
	if !a.Allowed || a.Delay != delay || a.RetryAfter != 0 {
		k.Fatalf("%s at %v: got %s, want it allowed after %v", describeQuota(k.quota), k.now()-epoch, describeResult(a.Result), delay)
	}
}

var kinds = [...]string{"Take", "Peek", "AtMost", "Reserve", "Charge", "Return", "Forget"}

func describeRequest(a limiter.Request) string {
	s := fmt.Sprintf("%s %d", kinds[a.Kind], a.N)
	if a.Keep != 0 {
		s += fmt.Sprintf(" keep %d", a.Keep)
	}
	if a.Within != 0 {
		s += fmt.Sprintf(" within %v", a.Within)
	}
	return s
}

func describeResult(r limiter.Result) string {
	return fmt.Sprintf("%+v taken %d", r.Decision, r.Taken)
}

func describeQuota(q *rules.Quota) string {
	s := fmt.Sprintf("%s %s burst %d", q.Algorithm, q.Rate, q.Burst)
	for _, x := range []struct {
		name string
		set  bool
		v    any
	}{
		{"missing", q.Missing != 0, q.Missing}, {"shape", q.Shape, q.Shape}, {"warm-up", q.WarmUp != 0, q.WarmUp},
		{"calendar", q.Calendar != "", q.Calendar}, {"zone", q.Zone != "", q.Zone}, {"blocks", q.Blocks != 0, q.Blocks},
		{"count-denied", q.CountDenied, true}, {"penalty", q.Penalty != 0, q.Penalty},
	} {
		if x.set {
			s += fmt.Sprintf(" %s %v", x.name, x.v)
		}
	}
	return s
}
