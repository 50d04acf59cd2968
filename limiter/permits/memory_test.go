package permits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

func permitRate(n int64, per time.Duration) Rate {
	return Rate{Rate: rules.Rate{N: n, Per: per}}
}

// newTestPermits returns permits with a rate.
func newTestPermits(t *testing.T, r Rate) *memory {
	t.Helper()
	p := New()
	if err := p.SetRate(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return p.(*memory)
}

func wantPermits(t *testing.T, p RateLimiter, want int64) {
	t.Helper()
	if n, err := p.AvailablePermits(t.Context()); n != want || err != nil {
		t.Errorf("%d permits there, %v; want %d", n, err, want)
	}
}

func wantAcquire(t *testing.T, p RateLimiter, n int64, want bool) {
	t.Helper()
	if took, err := p.TryAcquire(t.Context(), n); took != want || err != nil {
		t.Errorf("%d permits: %t, %v; want %t", n, took, err, want)
	}
}

// as returns the object of p as a client sees it.
func (p *memory) as(client string) RateLimiter { return &memory{p.object, client} }

func permitsWaiting(p *memory) int {
	return p.object.line.Waiting()
}

func TestPermitsClientsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := permitRate(3, time.Second)
		r.PerClient = true
		p := newTestPermits(t, r)
		for i := range 10_000 {
			wantAcquire(t, p.as(fmt.Sprint(i)), 1, true)
			if i%100 == 0 {
				time.Sleep(2 * time.Second)
			}
		}
		if n := len(p.object.clients); n > 400 {
			t.Errorf("%d clients are known", n)
		}
	})
}

func TestPermitsReleaseNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPermits(t, permitRate(5, 10*time.Second))
		wantAcquire(t, p, 2, true)
		time.Sleep(time.Second)
		wantAcquire(t, p, 3, true)
		if err := p.Release(t.Context(), 4); err != nil {
			t.Fatal(err)
		}
		wantPermits(t, p, 4)
		time.Sleep(9 * time.Second)
		wantPermits(t, p, 5)
	})
}

func TestPermitsEnd(t *testing.T) {
	gone := func(t *testing.T, p RateLimiter, want bool) {
		t.Helper()
		if _, err := p.Config(t.Context()); errors.Is(err, ErrRateNotSet) != want {
			t.Errorf("config: %v; gone should be %t", err, want)
		}
	}
	tells := func(t *testing.T, want bool, f func() (bool, error)) {
		t.Helper()
		if got, err := f(); got != want || err != nil {
			t.Errorf("%t, %v; want %t", got, err, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		t.Log("E5: Expire, ClearExpire, Delete")
		p := New()
		expire := func() (bool, error) { return p.Expire(ctx, time.Minute) }
		clearExpire := func() (bool, error) { return p.ClearExpire(ctx) }
		remove := func() (bool, error) { return p.Delete(ctx) }
		for _, f := range []func() (bool, error){expire, clearExpire, remove} {
			tells(t, false, f)
		}
		if err := p.SetRate(ctx, permitRate(2, time.Second)); err != nil {
			t.Fatal(err)
		}
		tells(t, false, clearExpire)
		tells(t, true, expire)
		time.Sleep(time.Minute - 1)
		wantAcquire(t, p, 1, true)
		gone(t, p, false)
		time.Sleep(time.Nanosecond)
		gone(t, p, true)
		tells(t, true, func() (bool, error) { return p.TrySetRate(ctx, permitRate(2, time.Hour)) })
		wantPermits(t, p, 2)
		tells(t, true, expire)
		tells(t, true, clearExpire)
		time.Sleep(time.Hour)
		gone(t, p, false)
		tells(t, true, remove)
		gone(t, p, true)
		tells(t, true, func() (bool, error) { return p.TrySetRate(ctx, permitRate(2, time.Hour)) })
		tells(t, true, func() (bool, error) { return p.Expire(ctx, 0) })
		gone(t, p, true)

		p.SetRate(ctx, permitRate(2, time.Second))
		tells(t, true, expire)
		p.UpdateRate(ctx, permitRate(3, time.Second))
		time.Sleep(time.Minute)
		gone(t, p, true)

		t.Log("E5: KeepAlive counts from the last use")
		r := permitRate(2, time.Second)
		r.KeepAlive = 3 * time.Second
		if err := p.SetRate(ctx, r); err != nil {
			t.Fatal(err)
		}
		for _, use := range []func(){
			func() { wantAcquire(t, p, 2, true) },
			func() { wantAcquire(t, p, 2, true); wantAcquire(t, p, 1, false) },
			func() { p.Release(ctx, 1) },
			func() { wantPermits(t, p, 2); p.UpdateRate(ctx, r) },
		} {
			time.Sleep(3*time.Second - 1)
			use()
		}
		time.Sleep(3*time.Second - 1)
		wantPermits(t, p, 2) // this is not a use
		time.Sleep(time.Nanosecond)
		gone(t, p, true)

		t.Log("who waits keeps it alive")
		if err := p.SetRate(ctx, r); err != nil {
			t.Fatal(err)
		}
		wantAcquire(t, p, 2, true)
		r.Rate.Per = r.KeepAlive
		p.UpdateRate(ctx, r)
		var waiting sync.WaitGroup
		for range 10 {
			waiting.Go(func() {
				if err := p.Acquire(ctx, 2); err != nil {
					t.Error(err)
				}
			})
		}
		waiting.Wait()
		gone(t, p, false)
		time.Sleep(3 * time.Second)
		gone(t, p, true)
	})
}

func TestPermitsWait(t *testing.T) {
	run := func(name string, f func(t *testing.T)) {
		t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
	}
	// end records when a wait for n permits ended, and its result.
	type end struct {
		n    int64
		at   time.Duration
		took bool
		err  error
	}
	type waits struct {
		sync.WaitGroup
		sync.Mutex
		start time.Time
		ends  []end
	}
	wait := func(w *waits, p RateLimiter, ctx context.Context, n int64, timeout time.Duration) {
		if w.start.IsZero() {
			w.start = time.Now()
		}
		w.Go(func() {
			took, err := p.TryAcquireWithin(ctx, n, timeout)
			w.Lock()
			defer w.Unlock()
			w.ends = append(w.ends, end{n, time.Since(w.start), took, err})
		})
		synctest.Wait()
	}
	want := func(t *testing.T, w *waits, want ...end) {
		t.Helper()
		w.Wait()
		inOrder := func(a, b end) int { // ends at one instant may be recorded in any order
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.n, b.n), cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
		}
		slices.SortFunc(w.ends, inOrder)
		slices.SortFunc(want, inOrder)
		if !slices.Equal(w.ends, want) {
			t.Errorf("ends\n%+v, want\n%+v", w.ends, want)
		}
	}

	run("E3: exactly as long as needed, and a timeout shorter than that fails at once", func(t *testing.T) {
		p := newTestPermits(t, permitRate(2, 10*time.Second))
		wantAcquire(t, p, 1, true)
		time.Sleep(3 * time.Second)
		wantAcquire(t, p, 1, true)
		var w waits
		wait(&w, p, t.Context(), 1, 7*time.Second-1)
		wait(&w, p, t.Context(), 2, 10*time.Second-1)
		wait(&w, p, t.Context(), 1, 7*time.Second)
		want(t, &w, end{1, 0, false, nil}, end{2, 0, false, nil}, end{1, 7 * time.Second, true, nil})
	})
	run("E3: first come, first served, whatever they want", func(t *testing.T) {
		p := newTestPermits(t, permitRate(3, 10*time.Second))
		wantAcquire(t, p, 2, true)
		var w waits
		wait(&w, p, t.Context(), 3, noEnd)
		wait(&w, p, t.Context(), 1, noEnd)            // there is one, but another caller was first
		wait(&w, p, t.Context(), 1, 20*time.Second-1) // the plan includes both
		wait(&w, p, t.Context(), 2, 20*time.Second)
		wantAcquire(t, p, 1, false)
		want(t, &w, end{1, 0, false, nil}, end{3, 10 * time.Second, true, nil},
			end{1, 20 * time.Second, true, nil}, end{2, 20 * time.Second, true, nil})
	})
	run("E3: cancelled by the context, and took nothing", func(t *testing.T) {
		p := newTestPermits(t, permitRate(2, 10*time.Second))
		wantAcquire(t, p, 2, true)
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		var w waits
		wait(&w, p, ctx, 2, noEnd)
		wait(&w, p, t.Context(), 1, noEnd)
		want(t, &w, end{2, 4 * time.Second, false, context.DeadlineExceeded}, end{1, 10 * time.Second, true, nil})
		wantPermits(t, p, 1)
	})
	run("who is behind one that gave up is served at once", func(t *testing.T) {
		p := newTestPermits(t, permitRate(2, 10*time.Second))
		wantAcquire(t, p, 1, true)
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		var w waits
		wait(&w, p, ctx, 2, noEnd)
		wait(&w, p, t.Context(), 1, noEnd)
		want(t, &w, end{1, 4 * time.Second, true, nil}, end{2, 4 * time.Second, false, context.DeadlineExceeded})
	})
	run("Release serves those who wait", func(t *testing.T) {
		p := newTestPermits(t, permitRate(2, 10*time.Second))
		wantAcquire(t, p, 2, true)
		var w waits
		wait(&w, p, t.Context(), 1, noEnd)
		wait(&w, p, t.Context(), 2, noEnd)
		time.Sleep(time.Second)
		p.Release(t.Context(), 1)
		want(t, &w, end{1, time.Second, true, nil}, end{2, 11 * time.Second, true, nil})
	})
	run("a rate that changes holds for those who wait", func(t *testing.T) {
		p := newTestPermits(t, permitRate(2, 10*time.Second))
		wantAcquire(t, p, 2, true)
		var w waits
		wait(&w, p, t.Context(), 2, noEnd)
		time.Sleep(time.Second)
		p.UpdateRate(t.Context(), permitRate(2, 5*time.Second))
		want(t, &w, end{2, 5 * time.Second, true, nil})

		wait(&w, p, t.Context(), 2, 5*time.Second)
		p.UpdateRate(t.Context(), permitRate(2, 6*time.Second)) // later than it would wait
		wait(&w, p, t.Context(), 2, noEnd)
		p.UpdateRate(t.Context(), permitRate(1, 5*time.Second))
		want(t, &w, end{2, 5 * time.Second, true, nil}, end{2, 5 * time.Second, false, nil}, end{2, 5 * time.Second, false, ErrTooMany})

		w.ends = nil
		wait(&w, p, t.Context(), 1, noEnd)
		p.SetRate(t.Context(), permitRate(2, 10*time.Second)) // all permits are free again
		want(t, &w, end{1, 5 * time.Second, true, nil})
	})
	run("a rate that goes is an error for those who wait", func(t *testing.T) {
		p := newTestPermits(t, permitRate(2, 10*time.Second))
		wantAcquire(t, p, 2, true)
		var w waits
		for range 3 {
			wait(&w, p, t.Context(), 1, noEnd)
		}
		time.Sleep(time.Second)
		p.Delete(t.Context())
		gone := end{1, time.Second, false, ErrRateNotSet}
		want(t, &w, gone, gone, gone)
	})
	run("the line keeps its order when clients come to share", func(t *testing.T) {
		r := permitRate(1, 10*time.Second)
		r.PerClient = true
		p := newTestPermits(t, r)
		var w waits
		for i := range int64(10) {
			client := p.as(fmt.Sprint(i % 3))
			client.TryAcquire(t.Context(), 1)
			r.Rate.N = 10
			p.UpdateRate(t.Context(), r)
			client.TryAcquire(t.Context(), 9)
			wait(&w, client, t.Context(), 1+i, noEnd)
		}
		r.PerClient = false
		p.UpdateRate(t.Context(), r)
		want(t, &w, end{1, 0, true, nil}, end{2, 0, true, nil}, end{3, 0, true, nil}, end{4, 0, true, nil},
			end{5, 10 * time.Second, true, nil}, end{6, 20 * time.Second, true, nil}, end{7, 30 * time.Second, true, nil},
			end{8, 40 * time.Second, true, nil}, end{9, 50 * time.Second, true, nil}, end{10, 60 * time.Second, true, nil})
		if n := permitsWaiting(p); n != 0 {
			t.Errorf("%d wait", n)
		}
	})
	run("the plan of a line is of the permits as they are", func(t *testing.T) {
		p := newTestPermits(t, permitRate(2, 10*time.Second))
		wantAcquire(t, p, 2, true)
		var w waits
		wait(&w, p, t.Context(), 1, 5*time.Second) // too late
		time.Sleep(10 * time.Second)
		wantAcquire(t, p, 2, true)
		wait(&w, p, t.Context(), 2, noEnd)          // at 20 s
		wait(&w, p, t.Context(), 1, 15*time.Second) // not before 30 s
		p.UpdateRate(t.Context(), permitRate(2, 5*time.Second))
		wait(&w, p, t.Context(), 1, 10*time.Second) // at 20 s now
		want(t, &w, end{1, 0, false, nil}, end{1, 10 * time.Second, false, nil}, end{2, 15 * time.Second, true, nil}, end{1, 20 * time.Second, true, nil})
	})
	run("a line costs no goroutine and one timer", func(t *testing.T) {
		p := newTestPermits(t, permitRate(100, time.Second))
		ctx, cancel := context.WithCancel(t.Context())
		var w waits
		for range 2000 {
			w.Go(func() { p.Acquire(ctx, 1) })
		}
		time.Sleep(5500 * time.Millisecond)
		if n := permitsWaiting(p); n != 2000-600 {
			t.Errorf("%d wait", n)
		}
		cancel()
		w.Wait()
		if n := permitsWaiting(p); n != 0 {
			t.Errorf("%d wait", n)
		}
	})
}

// TestPermitsBound checks that no interval has more takes than the rate, whoever asks and waits.
func TestPermitsBound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.Int64Range(1, 5).Draw(rt, "n")
		asks := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) [3]int64 {
			return [3]int64{
				rapid.Int64Range(0, 3000).Draw(rt, "pause"), rapid.Int64Range(1, n).Draw(rt, "n"), rapid.Int64Range(-1, 5000).Draw(rt, "timeout"),
			}
		}), 1, 30).Draw(rt, "asks")
		synctest.Test(t, func(t *testing.T) {
			type taken struct {
				at time.Time
				n  int64
			}
			var mu sync.Mutex
			var all []taken
			var waiting sync.WaitGroup
			p := newTestPermits(t, permitRate(n, time.Second))
			for _, a := range asks {
				time.Sleep(time.Duration(a[0]) * time.Millisecond)
				waiting.Go(func() {
					start, timeout := time.Now(), time.Duration(a[2])*time.Millisecond
					took, err := p.TryAcquireWithin(t.Context(), a[1], timeout)
					waited := time.Since(start)
					mu.Lock()
					defer mu.Unlock()
					if took {
						all = append(all, taken{time.Now(), a[1]})
					}
					if err != nil || waited > max(timeout, 0) || !took && waited > 0 {
						t.Errorf("%v: %t after %v, %v", a, took, waited, err)
					}
				})
				synctest.Wait()
			}
			waiting.Wait()
			for i, first := range all {
				sum := int64(0)
				for _, x := range all[i:] {
					if x.at.Sub(first.at) < time.Second {
						sum += x.n
					}
				}
				if sum > n {
					t.Errorf("%d of %d permits in a second: %+v", sum, n, all)
				}
			}
		})
	})
}

func TestPermitsAllocations(t *testing.T) {
	p := newTestPermits(t, permitRate(1000, time.Second))
	if n := testing.AllocsPerRun(1000, func() { p.TryAcquire(t.Context(), 1) }); n > 2 {
		t.Errorf("%v allocations", n)
	}
}
