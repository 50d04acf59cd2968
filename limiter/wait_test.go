package limiter_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

func deniedAfter(t *testing.T, err error, retry time.Duration) {
	t.Helper()
	var denied *limiter.DeniedError
	if !errors.As(err, &denied) || denied.Allowed || denied.RetryAfter != retry || denied.Rule == "" {
		t.Errorf("got %v, want a denial, retry after %v", err, retry)
	}
}

// waitFor returns how long a WaitN took, and its error.
func waitFor(ctx context.Context, l *limiter.Limiter, n int64) (time.Duration, error) {
	start := time.Now()
	err := l.WaitN(ctx, "k", n)
	return time.Since(start), err
}

func TestWaitIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &fake{}
		l := newNamed(t, b, "x", fakeQuota(10, 2))
		for i, want := range []time.Duration{0, 0, 100 * time.Millisecond, 100 * time.Millisecond} {
			if took, err := waitFor(context.Background(), l, 1); err != nil || took != want {
				t.Errorf("wait %d took %v, %v; want %v", i, took, err, want)
			}
		}
		if took, err := waitFor(context.Background(), l, 2); err != nil || took != 200*time.Millisecond {
			t.Errorf("two took %v, %v", took, err)
		}
		if calls, _ := b.count(); calls != 5 {
			t.Errorf("%d calls for 5 waits", calls)
		}
	})
}

func TestWaitNeverAndTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newNamed(t, &fake{}, "x", fakeQuota(1, 2))
		in := func(d time.Duration, n int64) error {
			ctx, cancel := context.WithTimeout(context.Background(), d)
			defer cancel()
			took, err := waitFor(ctx, l, n)
			if err != nil && took != 0 {
				t.Errorf("it took %v to refuse %d", took, n)
			}
			return err
		}
		deniedAfter(t, in(time.Hour, 3), 0)
		deniedAfter(t, in(time.Hour, -1), 0)
		if _, err := waitFor(context.Background(), l, 3); err == nil {
			t.Error("more than the burst, without a deadline: no error")
		}
		if err := in(time.Second, 2); err != nil {
			t.Fatal(err)
		}
		deniedAfter(t, in(time.Second-1, 1), 1)
		for range 20 { // just in time, always; and the denials took nothing
			if err := in(time.Second, 1); err != nil {
				t.Error(err)
			}
		}
		if err := in(time.Second, 0); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := l.WaitN(ctx, "new", 1); !errors.Is(err, context.Canceled) {
			t.Errorf("a context that has ended: %v", err)
		}
	})
}

// A caller that finds a queue full waits for a place in it if its turn comes in time. Otherwise it
// is refused at once.
func TestWaitForAPlaceInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := limiter.NewMemory(limiter.MemoryConfig{})
		if err != nil {
			t.Fatal(err)
		}
		l := newNamed(t, m, "x", rules.Quota{Algorithm: rules.LeakyBucket, Rate: perSecond5, Burst: 2, Shape: true})
		took := make(chan time.Duration, 20)
		for range cap(took) {
			go func() {
				d, err := waitFor(context.Background(), l, 1)
				if err != nil {
					t.Error(err)
				}
				took <- d
			}()
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		if d, err := waitFor(ctx, l, 1); err == nil || d != 0 {
			t.Errorf("a turn after 400 ms, in 300 ms: %v after %v", err, d)
		}
		var longest time.Duration
		for range cap(took) {
			longest = max(longest, <-took)
		}
		if want := 19 * 200 * time.Millisecond; longest < want || longest > want+20*time.Millisecond {
			t.Errorf("20 in a queue of 5/s took %v, want %v", longest, want)
		}
	})
}

func TestWaitGivesBackWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &fake{before: func(ctx context.Context, ops ...limiter.Op) error { return ctx.Err() }}
		l := newNamed(t, b, "x", fakeQuota(1, 5))
		if err := l.WaitN(context.Background(), "k", 5); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(300*time.Millisecond, cancel)
		if took, err := waitFor(ctx, l, 3); took != 300*time.Millisecond || !errors.Is(err, context.Canceled) {
			t.Errorf("%v after %v", err, took)
		}
		time.Sleep(700 * time.Millisecond)
		if d, err := l.AllowN(context.Background(), "k", 1); err != nil || !d.Allowed {
			t.Errorf("something stayed taken: %+v, %v", d, err)
		}
	})
}

func TestWaitTellsWhatWasNotGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("away")
		b := &fake{before: func(_ context.Context, ops ...limiter.Op) error {
			if ops[0].Kind == limiter.Return {
				return away
			}
			return nil
		}}
		l := newNamed(t, b, "x", fakeQuota(1, 1))
		l.WaitN(context.Background(), "k", 1)
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Millisecond, cancel)
		if err := l.WaitN(ctx, "k", 1); !errors.Is(err, context.Canceled) || !errors.Is(err, away) {
			t.Error(err)
		}
	})
}

// A backend that answers slowly may leave no time for the wait that it grants.
func TestWaitAfterASlowAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &fake{before: func(_ context.Context, ops ...limiter.Op) error {
			if ops[0].Kind == limiter.Reserve {
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		}}
		l := newNamed(t, b, "x", fakeQuota(1, 1))
		l.WaitN(context.Background(), "k", 1)
		ctx, cancel := context.WithTimeout(context.Background(), 950*time.Millisecond)
		defer cancel()
		took, err := waitFor(ctx, l, 1) // needs 900 ms when it has its answer, and 850 ms are left
		if took != 100*time.Millisecond {
			t.Errorf("it took %v to refuse", took)
		}
		deniedAfter(t, err, 50*time.Millisecond)
		time.Sleep(900 * time.Millisecond)
		if d, _ := l.AllowN(context.Background(), "k", 1); !d.Allowed {
			t.Error("what was reserved stayed taken")
		}
	})
}

func TestWaitInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newNamed(t, &fake{}, "x", fakeQuota(10, 1))
		l.WaitN(context.Background(), "k", 1)
		var (
			mu    sync.Mutex
			order []int
			all   sync.WaitGroup
		)
		for i := range 20 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Microsecond) // one comes after the other
				if err := l.WaitN(context.Background(), "k", 1); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
			})
		}
		start := time.Now()
		all.Wait()
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("20 waits took %v", took)
		}
		for i, o := range order {
			if i != o {
				t.Fatalf("order of %v", order)
			}
		}
	})
}

func TestWaitForTheEndOfALock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, q := &fake{}, fakeQuota(10, 1)
		q.Penalty = 5 * time.Second
		l := newNamed(t, b, "x", q)
		for range 2 {
			l.AllowN(context.Background(), "k", 1)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
		defer cancel()
		took, err := waitFor(ctx, l, 1)
		if took != 0 {
			t.Errorf("it took %v to refuse", took)
		}
		deniedAfter(t, err, 5*time.Second)
		if took, err := waitFor(context.Background(), l, 1); err != nil || took != 5*time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}

func TestWaitWhereNothingCanBeReserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fakePartly{&fake{}, []limiter.OpKind{limiter.Reserve, limiter.Return}}
		l := newNamed(t, b, "x", fakeQuota(10, 1))
		for i, want := range []time.Duration{0, 100 * time.Millisecond} {
			if took, err := waitFor(context.Background(), l, 1); err != nil || took != want {
				t.Errorf("wait %d took %v, %v; want %v", i, took, err, want)
			}
		}
		if calls, _ := b.count(); calls != 3 {
			t.Errorf("asked %d times for two waits", calls)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 99*time.Millisecond)
		defer cancel()
		took, err := waitFor(ctx, l, 1)
		if took != 0 {
			t.Errorf("it took %v to refuse", took)
		}
		deniedAfter(t, err, 100*time.Millisecond)
		deniedAfter(t, l.WaitN(context.Background(), "k", 2), 0)

		ctx, cancel = context.WithCancel(context.Background())
		time.AfterFunc(10*time.Millisecond, cancel)
		if took, err := waitFor(ctx, l, 1); !errors.Is(err, context.Canceled) || took != 10*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// A backend may report a next to zero retry time. It is still not asked in a busy loop.
func TestWaitDoesNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		l := newNamed(t, fakeFunc(func(op limiter.Op) (limiter.Result, error) {
			if op.Kind == limiter.Reserve {
				return limiter.Result{}, limiter.ErrUnsupported
			}
			asked.Add(1)
			return limiter.Result{Decision: rules.Decision{RetryAfter: 1}}, nil
		}), "x", fakeQuota(1, 1))
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if took, _ := waitFor(ctx, l, 1); took > time.Second || asked.Load() > 1001 {
			t.Errorf("asked %d times in %v", asked.Load(), took)
		}
	})
}

// A bucket that shapes lets a Take pass with a delay.
func TestWaitHonoursTheDelayOfATake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var back limiter.Op
		l := newNamed(t, fakeFunc(func(op limiter.Op) (limiter.Result, error) {
			switch op.Kind {
			case limiter.Take:
				return limiter.Result{Taken: 1, Mark: 9, Decision: rules.Decision{Allowed: true, Delay: time.Second}}, nil
			case limiter.Return:
				back = op
				return limiter.Result{}, nil
			}
			return limiter.Result{}, limiter.ErrUnsupported
		}), "x", fakeQuota(1, 1))
		if took, err := waitFor(context.Background(), l, 1); err != nil || took != time.Second {
			t.Errorf("%v after %v", err, took)
		}
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Millisecond, cancel)
		if took, err := waitFor(ctx, l, 1); !errors.Is(err, context.Canceled) || took != time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
		if back.N != 1 || back.Mark != 9 {
			t.Errorf("gave back %+v", back.Request)
		}
	})
}
