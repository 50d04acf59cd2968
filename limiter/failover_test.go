package limiter_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

var errFakeRefused = errors.New("connection refused")

// fakePrimary is a remote backend that can be unavailable in two ways.
type fakePrimary struct {
	fakeBatcher
	hangs, refuses atomic.Bool
	asked          atomic.Int64 // ops, whatever their results
}

func newFakePrimary() *fakePrimary {
	p := &fakePrimary{}
	p.before = func(ctx context.Context, ops ...limiter.Op) error {
		p.asked.Add(int64(len(ops)))
		switch {
		case p.hangs.Load():
			<-ctx.Done()
			return ctx.Err()
		case p.refuses.Load():
			return errFakeRefused
		}
		return ctx.Err()
	}
	return p
}

func newFailover(t testing.TB, p limiter.Backend, cfg limiter.FailoverConfig) *limiter.Failover {
	t.Helper()
	if cfg.Local == nil {
		cfg.Local = &fake{}
	}
	f, err := limiter.NewFailover(p, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// runInBubble runs run until stop is called or the bubble ends.
func runInBubble(t testing.TB, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- run(ctx) }()
	synctest.Wait()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

func fakeOp(kind limiter.OpKind, key string, n int64, q *rules.Quota) limiter.Op {
	return limiter.Op{Quota: q, Name: "x", Key: key, Request: limiter.Request{Kind: kind, N: n}}
}

// mustDo returns the result of Do and how long it took.
func mustDo(t testing.TB, b limiter.Backend, op limiter.Op) (limiter.Result, time.Duration) {
	t.Helper()
	start := time.Now()
	res, err := b.Do(context.Background(), op)
	if err != nil {
		t.Fatalf("%+v: %v", op, err)
	}
	return res, time.Since(start)
}

func TestFailoverRefuses(t *testing.T) {
	for name, cfg := range map[string]limiter.FailoverConfig{
		"a time-out below 0":      {Timeout: -1},
		"unknown Outage":          {Outage: "abroad"},
		"probes without a pause":  {MinProbe: time.Microsecond},
		"probes ever more often":  {MinProbe: time.Minute, MaxProbe: time.Second},
		"probes once in a while":  {MaxProbe: 24 * time.Hour},
		"probes before they were": {MinProbe: -time.Second},
	} {
		if _, err := limiter.NewFailover(&fake{}, cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := limiter.NewFailover(nil, limiter.FailoverConfig{}); err == nil {
		t.Error("no primary: no error")
	}
}

func TestFailoverDecidesAtOnceWhileThePrimaryIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		q, p := fakeQuota(10, 10), newFakePrimary()
		f := newFailover(t, p, limiter.FailoverConfig{
			Instances: func() int { return 5 }, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		defer runInBubble(t, f.Run)()
		if res, took := mustDo(t, f, fakeOp(limiter.Take, "a", 1, &q)); !res.Allowed || res.Limit != 10 || took != 0 {
			t.Fatalf("%+v after %v", res, took)
		}

		p.hangs.Store(true)
		for range 2 { // one call without an answer may be a stall
			if res, took := mustDo(t, f, fakeOp(limiter.Take, "c", 1, &q)); !res.Allowed || res.Limit != 2 || took != limiter.DefaultTimeout {
				t.Errorf("the first to fail: %+v after %v", res, took)
			}
		}
		mustDo(t, f, fakeOp(limiter.Take, "b", 1, &q))
		asked := p.asked.Load()
		if res, took := mustDo(t, f, fakeOp(limiter.Take, "b", 1, &q)); !res.Allowed || res.Remaining != 0 || took != 0 {
			t.Errorf("the second: %+v after %v", res, took)
		}
		// 10 a second are 2 for each of five instances.
		if res, took := mustDo(t, f, fakeOp(limiter.Take, "b", 1, &q)); res.Allowed || res.RetryAfter != 500*time.Millisecond || took != 0 {
			t.Errorf("the third: %+v after %v", res, took)
		}
		if got := p.asked.Load(); got != asked {
			t.Errorf("the primary was asked %d times while it was away", got-asked)
		}
		if s := f.Stats(); s.Failures != 2 || s.Local != 5 || time.Since(s.UnavailableSince) != 0 || s.Owing != 2 {
			t.Errorf("%+v", s)
		}

		p.hangs.Store(false)
		time.Sleep(125 * time.Millisecond) // the first probe
		if res, took := mustDo(t, f, fakeOp(limiter.Take, "b", 1, &q)); res.Allowed || took != 0 {
			t.Errorf("beyond its part, while others may be without the primary: %+v after %v", res, took)
		}
		time.Sleep(time.Second) // until they have found it, and charged theirs
		if res, _ := mustDo(t, f, fakeOp(limiter.Take, "b", 1, &q)); !res.Allowed || res.Limit != 10 || res.Remaining != 9 {
			t.Errorf("it is back: %+v", res)
		}
		if s := f.Stats(); s.Probes != 1 || !s.UnavailableSince.IsZero() || s.Owing != 0 || s.Settled != 4 {
			t.Errorf("%+v", s)
		}
		if s := log.String(); strings.Count(s, "level=WARN") != 1 || strings.Count(s, "level=INFO") != 1 || strings.Count(s, "\n") != 2 {
			t.Errorf("log:\n%s", s)
		}
	})
}

func TestFailoverOpenAndClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p := fakeQuota(1, 2), newFakePrimary()
		p.refuses.Store(true)
		local := newFailover(t, p, limiter.FailoverConfig{})
		open, closed := local.With(rules.OutageOpen), local.With(rules.OutageClosed)
		defer runInBubble(t, local.Run)()

		reserve := fakeOp(limiter.Reserve, "k", 1, &q)
		for range 3 {
			for kind, taken := range map[limiter.OpKind]int64{limiter.Take: 2, limiter.Peek: 0, limiter.AtMost: 2, limiter.Reserve: 2} {
				res, took := mustDo(t, open, fakeOp(kind, "k", 2, &q))
				if !res.Allowed || res.Reason != rules.ReasonOpen || res.Taken != taken || res.Delay != 0 || took != 0 {
					t.Errorf("open, kind %d: %+v after %v", kind, res, took)
				}
				res, took = mustDo(t, closed, fakeOp(kind, "k", 2, &q))
				if res.Allowed || res.Reason != rules.ReasonUnavailable || res.Taken != 0 || res.RetryAfter <= 0 || res.RetryAfter > 2*time.Second || res.Limit != 2 || took != 0 {
					t.Errorf("closed, kind %d: %+v after %v", kind, res, took)
				}
				for _, f := range []*limiter.Failover{local, open, closed} {
					if res, _ := mustDo(t, f, fakeOp(kind, "k", -1, &q)); res.Allowed || res.RetryAfter != 0 {
						t.Errorf("kind %d of less than nothing: %+v", kind, res)
					}
				}
			}
			for _, kind := range []limiter.OpKind{limiter.Charge, limiter.Return, limiter.Forget} {
				for _, f := range []*limiter.Failover{local, open, closed} {
					if res, took := mustDo(t, f, fakeOp(kind, "k", 1, &q)); !res.Allowed || took != 0 {
						t.Errorf("kind %d: %+v after %v", kind, res, took)
					}
				}
			}
			mustDo(t, local, fakeOp(limiter.Forget, "k", 0, &q))
		}
		if s := open.Stats(); s != closed.Stats() || s.Open == 0 || s.Closed == 0 || s.Local == 0 || s.Failures != 1 {
			t.Errorf("%+v", s)
		}
		p.hangs.Store(true)
		for range 500 { // also while a probe is under way
			time.Sleep(7 * time.Millisecond)
			if res, _ := mustDo(t, closed, reserve); res.RetryAfter <= 0 {
				t.Fatalf("%+v", res)
			}
		}
		p.hangs.Store(false)
		// A permit that was admitted without asking a backend is not returned to one.
		res, _ := mustDo(t, open, reserve)
		back := fakeOp(limiter.Return, "k", res.Taken, &q)
		back.Request = res.Return()
		mustDo(t, local, fakeOp(limiter.Take, "k", 2, &q))
		mustDo(t, local, back)
		if res, _ := mustDo(t, local, fakeOp(limiter.Peek, "k", 1, &q)); res.Remaining != 0 {
			t.Errorf("%+v", res)
		}
		p.refuses.Store(false)
		time.Sleep(4 * time.Second)
		mustDo(t, local, fakeOp(limiter.Take, "k", 2, &q))
		p.count()
		if res, _ := mustDo(t, open, back); !res.Allowed {
			t.Errorf("%+v", res)
		}
		if calls, ops := p.count(); calls != 0 {
			t.Errorf("the primary got %+v", ops)
		}
	})
}

// Permits taken locally are returned locally, and permits taken from the primary to the primary,
// whoever decides by then.
func TestFailoverReturnsToWhomItTookFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p, local := fakeQuota(1, 10), newFakePrimary(), &fake{}
		f := newFailover(t, p, limiter.FailoverConfig{Local: local})
		defer runInBubble(t, f.Run)()
		there := func(b limiter.Backend, want int64) {
			t.Helper()
			if res, _ := mustDo(t, b, fakeOp(limiter.Peek, "k", 1, &q)); res.Remaining != want {
				t.Errorf("%d remain, want %d", res.Remaining, want)
			}
		}
		back := func(res limiter.Result) limiter.Op {
			o := fakeOp(limiter.Return, "k", res.Taken, &q)
			o.Request = res.Return()
			return o
		}
		fromPrimary, _ := mustDo(t, f, fakeOp(limiter.Take, "k", 4, &q)) // and is noted locally
		p.refuses.Store(true)
		fromLocal, _ := mustDo(t, f, fakeOp(limiter.Take, "k", 3, &q))
		p.refuses.Store(false)
		there(local, 3)
		there(p, 6)
		time.Sleep(125 * time.Millisecond)
		mustDo(t, f, back(fromLocal))
		there(local, 6)
		there(p, 6)
		// A batch may hold both kinds.
		p.refuses.Store(true)
		fromLocal, _ = mustDo(t, f, fakeOp(limiter.Take, "k", 3, &q))
		p.refuses.Store(false)
		time.Sleep(250 * time.Millisecond)
		results := make([]limiter.Result, 2)
		if err := f.DoAll(context.Background(), []limiter.Op{back(fromLocal), back(fromPrimary)}, results); err != nil {
			t.Fatal(err)
		}
		_, ops := p.count()
		ops = slices.DeleteFunc(ops, func(op limiter.Op) bool { return op.Kind != limiter.Return })
		if len(ops) != 3 || ops[0].N != 3 || ops[1].N != 3 || ops[2].N != 4 { // it was charged with the permits taken locally
			t.Errorf("the primary got %+v", ops)
		}
		there(p, 10)
		there(local, 10)
	})
}

// Permits granted by the primary are also taken locally, so that an outage brings no fresh burst.
func TestFailoverKeepsLocalWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p := fakeQuota(10, 100), newFakePrimary()
		f := newFailover(t, p, limiter.FailoverConfig{Instances: func() int { return 4 }})
		defer runInBubble(t, f.Run)()
		for _, kind := range []limiter.OpKind{limiter.Take, limiter.Charge, limiter.AtMost, limiter.Reserve} {
			mustDo(t, f, fakeOp(limiter.Forget, "k", 0, &q))
			mustDo(t, f, fakeOp(kind, "k", 20, &q)) // of the 25 that one of four has
			p.refuses.Store(true)
			if res, _ := mustDo(t, f, fakeOp(limiter.Peek, "k", 1, &q)); res.Limit != 25 || res.Remaining != 5 {
				t.Errorf("kind %d: %+v", kind, res)
			}
			p.refuses.Store(false)
			time.Sleep(10 * time.Second)
		}
		// The primary granted more than the local share, which is now empty but not in debt.
		mustDo(t, f, fakeOp(limiter.Forget, "k", 0, &q))
		mustDo(t, f, fakeOp(limiter.Take, "k", 90, &q))
		p.refuses.Store(true)
		if res, _ := mustDo(t, f, fakeOp(limiter.Take, "k", 1, &q)); res.Allowed || res.RetryAfter != 400*time.Millisecond {
			t.Errorf("%+v", res)
		}
		// A request for more than the share can ever hold is not denied forever.
		if res, _ := mustDo(t, f, fakeOp(limiter.Take, "k", 26, &q)); res.Allowed || res.Reason != rules.ReasonUnavailable || res.RetryAfter == 0 {
			t.Errorf("%+v", res)
		}
		if res, _ := mustDo(t, f, fakeOp(limiter.Take, "k", 101, &q)); res.Allowed || res.Reason != rules.ReasonLimited || res.RetryAfter != 0 {
			t.Errorf("%+v", res)
		}
		keeps := fakeOp(limiter.Take, "new", 1, &q)
		keeps.Keep = 96 // of 100: 24 of 25
		if res, _ := mustDo(t, f, keeps); !res.Allowed {
			t.Errorf("%+v", res)
		}
	})
}

// A request that was returned because another limit denied it leaves no trace locally. Otherwise
// requests denied elsewhere would use up the share.
func TestFailoverReturnsWhatItNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePrimary()
		f := newFailover(t, p, limiter.FailoverConfig{})
		all, none := newNamed(t, f, "all", fakeQuota(1, 5)), newNamed(t, f, "none", fakeQuota(1, 1))
		for range 100 {
			limiter.AllowAll(context.Background(), limiter.Claim{Limiter: all, Key: "k", N: 1}, limiter.Claim{Limiter: none, Key: "k", N: 2})
		}
		p.refuses.Store(true)
		if d, err := all.Peek(context.Background(), "k", 1); err != nil || d.Remaining != 5 {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// A charge of a window is not returned to the local window, since its mark there is unknown.
func TestFailoverReturnsNothingToAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, local := rules.Quota{Algorithm: rules.SlidingLog, Rate: rules.Rate{N: 5, Per: time.Second}, Burst: 5}, &fake{}
		f := newFailover(t, newFakePrimary(), limiter.FailoverConfig{Local: local})
		res, _ := mustDo(t, f, fakeOp(limiter.Take, "k", 2, &q))
		back := fakeOp(limiter.Return, "k", 2, &q)
		back.Request = res.Return()
		mustDo(t, f, back)
		if res, _ := mustDo(t, local, fakeOp(limiter.Peek, "k", 1, &q)); res.Remaining != 3 {
			t.Errorf("%+v", res)
		}
	})
}

func TestFailoverBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p := fakeQuota(1, 10), newFakePrimary()
		f := newFailover(t, p, limiter.FailoverConfig{})
		ops := []limiter.Op{fakeOp(limiter.Take, "a", 1, &q), fakeOp(limiter.Take, "b", 2, &q), fakeOp(limiter.Take, "a", 3, &q)}
		results := make([]limiter.Result, 3)
		for _, hangs := range []bool{false, true} {
			p.hangs.Store(hangs)
			start := time.Now()
			if err := f.DoAll(context.Background(), ops, results); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); hangs && took != limiter.DefaultTimeout {
				t.Errorf("it took %v", took)
			}
			for i, want := range map[bool][]int64{false: {9, 8, 6}, true: {5, 6, 2}}[hangs] {
				if results[i].Remaining != want {
					t.Errorf("hangs %v, op %d: %+v, want %d remaining", hangs, i, results[i], want)
				}
			}
		}
		if calls, _ := p.count(); calls != 1 {
			t.Errorf("%d calls", calls)
		}
		if err := f.DoAll(context.Background(), append(ops, limiter.Op{Quota: &q, Name: "x"}), make([]limiter.Result, 4)); !errors.Is(err, limiter.ErrNoKey) {
			t.Error(err)
		}
		if err := f.DoAll(context.Background(), nil, nil); err != nil {
			t.Error(err)
		}
	})
}

// A primary that is not a Batcher is asked for each op. An error affects one op, and the results of
// the others hold.
func TestFailoverBatchOfASinglePrimary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p := fakeQuota(1, 10), fakePartly{&fake{}, []limiter.OpKind{limiter.Forget}}
		f := newFailover(t, p, limiter.FailoverConfig{})
		results := make([]limiter.Result, 3)
		if err := f.DoAll(context.Background(), []limiter.Op{fakeOp(limiter.Take, "a", 1, &q), fakeOp(limiter.Take, "a", 2, &q)}, results); err != nil || results[1].Remaining != 7 {
			t.Errorf("%+v, %v", results, err)
		}
		err := f.DoAll(context.Background(), []limiter.Op{fakeOp(limiter.Take, "a", 1, &q), fakeOp(limiter.Forget, "a", 0, &q), fakeOp(limiter.Take, "a", 1, &q)}, results)
		if !errors.Is(err, limiter.ErrUnsupported) || limiter.ErrorOf(err, 0) != nil || limiter.ErrorOf(err, 1) == nil || limiter.ErrorOf(err, 2) != nil {
			t.Error(err)
		}
		if results[0].Remaining != 6 || results[2].Remaining != 5 {
			t.Errorf("%+v", results)
		}
		if s := f.Stats(); s != (limiter.FailoverStats{}) {
			t.Errorf("%+v", s)
		}
	})
}

func TestFailoverIsNotOpenedByItsCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p := fakeQuota(1, 10), newFakePrimary()
		f := newFailover(t, fakePartly{&p.fake, []limiter.OpKind{limiter.Reserve}}, limiter.FailoverConfig{})
		if _, err := f.Do(context.Background(), fakeOp(limiter.Reserve, "k", 1, &q)); !errors.Is(err, limiter.ErrUnsupported) {
			t.Error(err)
		}
		if _, err := f.Do(context.Background(), fakeOp(limiter.Take, "", 1, &q)); !errors.Is(err, limiter.ErrNoKey) {
			t.Error(err)
		}
		impatient := func() error {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
			defer cancel()
			_, err := f.Do(ctx, fakeOp(limiter.Take, "k", 1, &q))
			return err
		}
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := f.Do(gone, fakeOp(limiter.Take, "k", 1, &q)); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		p.hangs.Store(true)
		for range 100 { // clients that hang up at once, however many
			if _, err := f.Do(gone, fakeOp(limiter.Take, "k", 1, &q)); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		for range 8 {
			if err := impatient(); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		p.hangs.Store(false)
		mustDo(t, f, fakeOp(limiter.Take, "k", 1, &q)) // an answer: they count from the start
		p.hangs.Store(true)
		for range 9 {
			impatient()
		}
		if s := f.Stats(); s.Failures != 0 || !s.UnavailableSince.IsZero() {
			t.Fatalf("%+v", s)
		}
		for range 2 { // the tenth in a row is like one without an answer, and so is the next
			if err := impatient(); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		if err := impatient(); err != nil {
			t.Errorf("nobody waits long enough, and it is not opened: %v", err)
		}
	})
}

func TestFailoverIsNotOpenedByABadQuota(t *testing.T) {
	m, err := limiter.NewMemory(limiter.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	f := newFailover(t, m, limiter.FailoverConfig{Timeout: time.Minute})
	for _, q := range []*rules.Quota{nil, {}, {Algorithm: "x_none", Rate: rules.Rate{N: 1, Per: 1}, Burst: 1}} {
		if _, err := f.Do(context.Background(), fakeOp(limiter.Take, "k", 1, q)); err == nil {
			t.Errorf("%+v: no error", q)
		}
		if err := f.DoAll(context.Background(), []limiter.Op{fakeOp(limiter.Take, "k", 1, q)}, make([]limiter.Result, 1)); err == nil {
			t.Errorf("%+v: no error", q)
		}
	}
	if s := f.Stats(); s != (limiter.FailoverStats{}) {
		t.Errorf("%+v", s)
	}
}

// A connection whose deadline is the caller's may report it before the context does.
func TestFailoverIsNotOpenedByADeadline(t *testing.T) {
	q, p := fakeQuota(1, 10), newFakePrimary()
	f := newFailover(t, p, limiter.FailoverConfig{})
	p.refuses.Store(true)
	if _, err := f.Do(fakeLate{context.Background()}, fakeOp(limiter.Take, "k", 1, &q)); !errors.Is(err, errFakeRefused) || f.Stats().Failures != 0 {
		t.Errorf("%v, %+v", err, f.Stats())
	}
}

type fakeLate struct{ context.Context }

func (fakeLate) Deadline() (time.Time, bool) { return time.Now(), true }

func TestFailoverProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p := fakeQuota(1, 10), newFakePrimary()
		f := newFailover(t, p, limiter.FailoverConfig{})
		stop := runInBubble(t, f.Run)
		p.hangs.Store(true)
		mustDo(t, f, fakeOp(limiter.Take, "k", 1, &q))
		probes := func(d time.Duration) uint64 {
			before := f.Stats().Probes
			time.Sleep(d)
			return f.Stats().Probes - before
		}
		if n := probes(time.Second); n < 2 || n > 4 {
			t.Errorf("%d probes in the first second", n)
		}
		probes(5 * time.Second)
		if n := probes(time.Minute); n < 60/3 || n > 60*2/3 {
			t.Errorf("%d probes in a minute", n)
		}
		stop()
		if n := probes(time.Minute); n != 0 {
			t.Errorf("%d probes of one that does not run", n)
		}
		// Without Run, one request probes the primary, and the others do not wait.
		var slow atomic.Int64
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if _, took := mustDo(t, f, fakeOp(limiter.Take, "k", 1, &q)); took > 0 {
					slow.Add(1)
				}
			})
		}
		all.Wait()
		if n := slow.Load(); n != 1 {
			t.Errorf("%d requests waited", n)
		}
		if _, took := mustDo(t, f, fakeOp(limiter.Take, "k", 1, &q)); took != 0 {
			t.Errorf("the next one waited for %v", took)
		}
		defer runInBubble(t, f.Run)() // and may be run again
		defer runInBubble(t, f.Run)() // even twice
		p.hangs.Store(false)
		time.Sleep(3 * time.Second)
		if res, _ := mustDo(t, f, fakeOp(limiter.Take, "other", 1, &q)); res.Remaining != 9 || !f.Stats().UnavailableSince.IsZero() {
			t.Errorf("%+v, %+v", res, f.Stats())
		}
		// It fails again at once, so probes stay as rare.
		p.refuses.Store(true)
		mustDo(t, f, fakeOp(limiter.Take, "other", 1, &q))
		if n := probes(time.Second); n > 1 {
			t.Errorf("%d probes of one that flaps", n)
		}
	})
}

// If a backend has no notion of nodes, a probe is a write that touches no one's key. While the
// backend answers only reads, it is unavailable.
func TestFailoverProbesByAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p := fakeQuota(1, 10), newFakePrimary()
		f := newFailover(t, p, limiter.FailoverConfig{})
		var mended atomic.Bool
		p.before = func(_ context.Context, ops ...limiter.Op) error {
			for _, op := range ops {
				if op.Kind != limiter.Peek && !mended.Load() {
					return errFakeRefused
				}
			}
			return nil
		}
		defer runInBubble(t, f.Run)()
		if res, _ := mustDo(t, f, fakeOp(limiter.Peek, "k", 1, &q)); res.Remaining != 10 {
			t.Errorf("%+v", res)
		}
		mustDo(t, f, fakeOp(limiter.Charge, "k", 5, &q))
		time.Sleep(10 * time.Second)
		if s := f.Stats(); s.UnavailableSince.IsZero() || s.Nodes != 1 || s.Failures != 1 {
			t.Errorf("%+v", s)
		}
		p.count()
		mended.Store(true)
		time.Sleep(3 * time.Second)
		if s := f.Stats(); !s.UnavailableSince.IsZero() || s.Nodes != 0 {
			t.Errorf("%+v", s)
		}
		if _, asked := p.count(); len(asked) != 1 || asked[0].Kind != limiter.Take || asked[0].Key == "k" || asked[0].Name == "x" {
			t.Errorf("%+v", asked)
		}
	})
}

// A call that began before an outage and fails after it does not change the current state.
func TestFailoverLateFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p := fakeQuota(1, 10), newFakePrimary()
		f := newFailover(t, p, limiter.FailoverConfig{Timeout: time.Second})
		defer runInBubble(t, f.Run)()
		p.hangs.Store(true)
		var late sync.WaitGroup
		late.Go(func() { mustDo(t, f, fakeOp(limiter.Take, "late", 1, &q)) })
		time.Sleep(time.Millisecond)
		p.hangs.Store(false)
		p.refuses.Store(true)
		mustDo(t, f, fakeOp(limiter.Take, "k", 1, &q))
		p.refuses.Store(false)
		time.Sleep(200 * time.Millisecond)
		if !f.Stats().UnavailableSince.IsZero() {
			t.Fatal("it is not back")
		}
		late.Wait()
		if s := f.Stats(); !s.UnavailableSince.IsZero() || s.Failures != 2 {
			t.Errorf("%+v", s)
		}
	})
}

// Whatever the primary does, each call returns a decision within the timeout, and nothing is asked
// twice. While the primary is unavailable only probes reach it. It is used again soon after it
// recovers.
func TestFailoverProperty(t *testing.T) {
	checkInBubble(t, func(rt *rapid.T) {
		const timeout = 20 * time.Millisecond
		var (
			q       = fakeQuota(1000, 1000)
			p       = newFakePrimary()
			mu      sync.Mutex
			seen    = map[string]int{}
			latency atomic.Int64
			inner   = p.before
		)
		p.before = func(ctx context.Context, ops ...limiter.Op) error {
			mu.Lock()
			for _, op := range ops {
				if op.Name == "x" && op.Kind == limiter.Take { // else it is a probe, or a charge for granted permits
					seen[op.Key]++
				}
			}
			mu.Unlock()
			if late := time.Duration(latency.Load()); late > 0 { // timers that are due at once are unreliable under the race detector
				select {
				case <-time.After(late):
				case <-ctx.Done():
				}
			}
			return inner(ctx, ops...)
		}
		f := newFailover(t, p, limiter.FailoverConfig{Timeout: timeout, Outage: rapid.SampledFrom([]rules.OutagePolicy{"", "open", "closed"}).Draw(rt, "away")})
		defer runInBubble(t, f.Run)()
		var calls sync.WaitGroup
		for i := range rapid.IntRange(1, 60).Draw(rt, "steps") {
			p.hangs.Store(rapid.IntRange(0, 9).Draw(rt, "hangs") == 0)
			p.refuses.Store(rapid.IntRange(0, 9).Draw(rt, "refuses") == 0)
			latency.Store(int64(rapid.IntRange(0, 25).Draw(rt, "latency")) * int64(time.Millisecond))
			for j := range rapid.IntRange(1, 4).Draw(rt, "at once") {
				batch := rapid.Bool().Draw(rt, "batch")
				calls.Go(func() {
					start, key := time.Now(), fmt.Sprint(i, "/", j)
					ops := []limiter.Op{fakeOp(limiter.Take, key, 1, &q), fakeOp(limiter.Take, key+"b", 1, &q)}
					var err error
					if batch {
						err = f.DoAll(context.Background(), ops, make([]limiter.Result, 2))
					} else {
						_, err = f.Do(context.Background(), ops[0])
					}
					if took := time.Since(start); took > timeout || err != nil {
						t.Errorf("a call took %v: %v", took, err)
					}
				})
			}
			time.Sleep(time.Duration(rapid.IntRange(0, 300).Draw(rt, "pause")) * time.Millisecond)
			if !f.Stats().UnavailableSince.IsZero() {
				synctest.Wait()
				calls.Wait()
				mu.Lock()
				before := len(seen)
				mu.Unlock()
				if !f.Stats().UnavailableSince.IsZero() {
					if _, took := mustDo(t, f, fakeOp(limiter.Take, fmt.Sprint("away", i), 1, &q)); took != 0 {
						t.Errorf("a call took %v while the primary was away", took)
					}
					mu.Lock()
					if len(seen) != before {
						t.Error("a request reached a primary that was away")
					}
					mu.Unlock()
				}
			}
		}
		calls.Wait()
		for key, n := range seen {
			if n > 1 {
				t.Errorf("%s was asked %d times", key, n)
			}
		}
		p.hangs.Store(false)
		p.refuses.Store(false)
		latency.Store(0)
		time.Sleep(2*time.Second*5/4 + timeout)
		if s := f.Stats(); !s.UnavailableSince.IsZero() {
			t.Errorf("it is not back: %+v", s)
		}
		if t.Failed() {
			rt.FailNow()
		}
	})
}
