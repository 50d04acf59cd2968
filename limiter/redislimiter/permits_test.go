package redislimiter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter/permits"
	"github.com/hotparam/hotparam/rules"
)

// permitsOf returns permits with a long timeout and their own client ID.
func permitsOf(tb testing.TB, client redis.UniversalClient, edit func(*PermitsConfig)) *sharedPermits {
	tb.Helper()
	cfg := PermitsConfig{Namespace: namespaceOf(tb), Name: "name", Timeout: patience}
	if edit != nil {
		edit(&cfg)
	}
	p, err := NewPermits(client, cfg)
	must(tb, err)
	return p.(*sharedPermits)
}

func permitRate(n int64, per time.Duration) permits.Rate {
	return permits.Rate{Rate: rules.Rate{N: n, Per: per}}
}

func perClient(n int64, per time.Duration) permits.Rate {
	r := permitRate(n, per)
	r.PerClient = true
	return r
}

// takesNow acquires without waiting.
func takesNow(tb testing.TB, p permits.RateLimiter, n int64, want bool) {
	tb.Helper()
	got, err := p.TryAcquire(context.Background(), n)
	must(tb, err)
	if got != want {
		tb.Fatalf("acquire %d: %v, want %v", n, got, want)
	}
}

func left(tb testing.TB, p permits.RateLimiter, want int64) {
	tb.Helper()
	got, err := p.AvailablePermits(context.Background())
	must(tb, err)
	if got != want {
		tb.Fatalf("%d permits are available, want %d", got, want)
	}
}

// [E2, A4] Objects and clients are separate whatever their names. All keys of one object share a
// slot, and a reset affects all clients.
func permitsTable(t *testing.T, client redis.UniversalClient) {
	ctx := t.Context()
	for _, name := range []string{"a", "{a}", "a{b}c", "{}", "}", "\x00 \xff"} {
		one := permitsOf(t, client, func(c *PermitsConfig) { c.Name, c.Client = name, "{1}" })
		two := permitsOf(t, client, func(c *PermitsConfig) { c.Name, c.Client = name, "{2}" })
		must(t, one.SetRate(ctx, perClient(3, time.Hour)))
		takesNow(t, one, 3, true)
		takesNow(t, two, 2, true)
		left(t, one, 0)
		left(t, two, 1)
		must(t, two.UpdateRate(ctx, perClient(4, time.Hour)))
		left(t, one, 1)
		left(t, two, 2)
		must(t, two.SetRate(ctx, perClient(5, time.Hour)))
		left(t, one, 5)
		must(t, one.UpdateRate(ctx, permitRate(5, time.Hour)))
		takesNow(t, one, 5, true)
		left(t, two, 0)
		if was, err := one.Delete(ctx); !was || err != nil {
			t.Errorf("%q: delete: %v, %v", name, was, err)
		}
		if n := client.Exists(ctx, one.keys...).Val(); n != 0 {
			t.Errorf("%q: %d keys are left", name, n)
		}
	}
}

func TestPermitsArguments(t *testing.T) {
	client := clientAt(t, "redis://localhost:1") // Redis is not asked
	for name, edit := range map[string]func(*PermitsConfig){
		"Namespace": func(c *PermitsConfig) { c.Namespace = "" },
		"Name":      func(c *PermitsConfig) { c.Name = "" },
		"Timeout":   func(c *PermitsConfig) { c.Timeout = -1 },
	} {
		cfg := PermitsConfig{Namespace: "shop", Name: "n"}
		edit(&cfg)
		if _, err := NewPermits(client, cfg); err == nil || !strings.Contains(err.Error(), "PermitsConfig."+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := permitsOf(t, client, nil)
	for _, r := range []permits.Rate{{}, permitRate(-1, time.Second), permitRate(1<<51, 290*365*24*time.Hour), {Rate: rules.Rate{N: 1, Per: time.Second}, KeepAlive: 1}} {
		if err := p.SetRate(t.Context(), r); err == nil || strings.Contains(err.Error(), "connect") {
			t.Errorf("%+v: %v", r, err)
		}
	}
	for _, n := range []int64{0, -1, math.MinInt64} {
		if _, err := p.TryAcquireWithin(t.Context(), n, math.MinInt64); !errors.Is(err, permits.ErrNone) {
			t.Errorf("acquire %d: %v", n, err)
		}
	}
}

// [E4 bug] The reported wait of a denial is exact: a permit is free again one interval after it was
// taken, and earlier waiters are served first.
func TestPermitsWait(t *testing.T) {
	t.Parallel()
	client := clientAt(t, testenv.Redis(t).URL())
	ctx := t.Context()
	p := permitsOf(t, client, nil)
	must(t, p.SetRate(ctx, permitRate(3, time.Hour)))
	takesNow(t, p, 1, true)
	first := client.ZRange(ctx, p.keys[1], -1, -1).Val()[0]
	start := time.Now()
	takesNow(t, p, 2, true)
	last := client.ZRangeWithScores(ctx, p.keys[1], -1, -1).Val()[0].Score
	must(t, client.ZAdd(ctx, p.keys[1], redis.Z{Member: first, Score: last - 300_000}).Err())
	for _, test := range []struct {
		n      int64
		before []int64
		want   time.Duration // time since the last two were taken
	}{
		{n: 1, want: time.Hour - 300*time.Millisecond},
		{n: 2, want: time.Hour},
		{n: 3, want: time.Hour},
		{n: 1, before: []int64{1}, want: time.Hour},
		{n: 1, before: []int64{1, 2}, want: 2*time.Hour - 300*time.Millisecond},
		{n: 1, before: []int64{3}, want: 2 * time.Hour},
		{n: 3, before: []int64{3, 2, 2}, want: 4 * time.Hour},
		{n: 2, before: []int64{math.MaxInt64}, want: 2 * time.Hour},
	} {
		took, wait, err := p.takePermits(ctx, "", test.n, false, test.before)
		must(t, err)
		if took || wait > test.want || wait < test.want-time.Since(start) {
			t.Errorf("%d after %v: %v, wait %v, want about %v", test.n, test.before, took, wait, test.want)
		}
	}
	// The wait is as reported.
	must(t, p.SetRate(ctx, permitRate(2, 200*time.Millisecond)))
	for {
		took, wait, err := p.takePermits(ctx, "", 2, false, nil)
		must(t, err)
		if wait < 0 || wait > 200*time.Millisecond {
			t.Fatalf("wait %v", wait)
		}
		if took {
			continue // it is the first, or the machine stood still
		}
		time.Sleep(wait)
		takesNow(t, p, 2, true)
		return
	}
}

// Within one process callers are served in the order of their arrival, and no one overtakes. A
// caller that would wait too long is denied at once.
func TestPermitsLine(t *testing.T) {
	t.Parallel()
	client := clientAt(t, testenv.Redis(t).URL())
	p := permitsOf(t, client, nil)
	ctx := t.Context()
	must(t, p.SetRate(ctx, permitRate(2, time.Hour)))
	takesNow(t, p, 2, true)
	stands := func(n int) { eventually(t, "a place in line", func() bool { return p.line.Waiting() == n }) }
	order := make(chan string, 4)
	var all sync.WaitGroup
	for i, name := range []string{"a", "b", "c", "d"} {
		all.Go(func() {
			if err := p.Acquire(ctx, 2); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			order <- name
			if err := p.Release(ctx, 2); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		stands(i + 1)
	}
	gone, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- p.Acquire(gone, 1) }()
	stands(5)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if ok, err := p.TryAcquireWithin(ctx, 1, 4*time.Hour); ok || err != nil { // due in almost five
		t.Errorf("a timeout that is too short: %v, %v", ok, err)
	}
	must(t, p.Release(ctx, 1))
	takesNow(t, p, 1, false) // there is one, and the first one wants two
	must(t, p.Release(ctx, 1))
	all.Wait()
	close(order)
	got := ""
	for name := range order {
		got += name
	}
	if got != "abcd" {
		t.Errorf("served in the order %s", got)
	}
	left(t, p, 2)
}

// [E5] Losing a part of the state never breaks anything.
func TestPermitsLostParts(t *testing.T) {
	t.Parallel()
	client := clientAt(t, testenv.Redis(t).URL())
	ctx := t.Context()
	for _, r := range []permits.Rate{permitRate(3, time.Hour), perClient(3, time.Hour)} {
		for part := range 3 {
			p := permitsOf(t, client, nil)
			must(t, p.SetRate(ctx, r))
			takesNow(t, p, 3, true)
			gone := client.Del(ctx, p.keys[part]).Val()
			_, err := p.TryAcquire(ctx, 1)
			if part == 0 != errors.Is(err, permits.ErrRateNotSet) || part > 0 && err != nil {
				t.Errorf("without %s: %v", p.keys[part], err)
			}
			if part > 0 {
				left(t, p, map[int64]int64{1: 2, 0: 0}[gone])
			}
			set, err := p.TrySetRate(ctx, r)
			if set != (part == 0) || err != nil {
				t.Errorf("without %s: set %v, %v", p.keys[part], set, err)
			}
			if part == 0 {
				takesNow(t, p, 3, true) // a new rate starts with all permits
			}
		}
		for _, field := range []string{"rate", "interval", "client", "epoch"} {
			p := permitsOf(t, client, nil)
			must(t, p.SetRate(ctx, r))
			takesNow(t, p, 3, true)
			must(t, client.HDel(ctx, p.keys[0], field).Err())
			if _, err := p.TryAcquire(ctx, 1); !errors.Is(err, permits.ErrRateNotSet) {
				t.Errorf("without %s: %v", field, err)
			}
			if _, err := p.Config(ctx); !errors.Is(err, permits.ErrRateNotSet) {
				t.Errorf("without %s: %v", field, err)
			}
			if set, err := p.TrySetRate(ctx, r); !set || err != nil {
				t.Errorf("without %s: set %v, %v", field, set, err)
			}
			takesNow(t, p, 3, true)
		}
	}
}

// Redis's clock goes back. If it is by up to a minute, permits wait for the clock to catch up. If
// it is by more, the times of all takes move with it. The leap grants nothing.
func TestPermitsClockGoesBack(t *testing.T) {
	t.Parallel()
	client := clientAt(t, testenv.Redis(t).URL())
	ctx := t.Context()
	for _, back := range []time.Duration{30 * time.Second, time.Hour, 1000 * time.Hour} {
		p := permitsOf(t, client, nil)
		must(t, p.SetRate(ctx, permitRate(4, 90*time.Minute)))
		takesNow(t, p, 1, true)
		takesNow(t, p, 2, true)
		for _, m := range client.ZRangeByScore(ctx, p.keys[1], &redis.ZRangeBy{Min: "(0", Max: "+inf"}).Val() {
			must(t, client.ZIncrBy(ctx, p.keys[1], float64(back.Microseconds()), m).Err())
		}
		left(t, p, 1)
		takesNow(t, p, 2, false)
		takesNow(t, p, 1, true)
		left(t, p, 0)
		_, wait, err := p.takePermits(ctx, "", 4, false, nil)
		must(t, err)
		if bound := 90*time.Minute + min(back, time.Minute); wait > bound || wait < bound-2*time.Minute {
			t.Errorf("back by %v: all are there in %v, want %v at most", back, wait, bound)
		}
	}
}

// [E5] Some parts of the state expire and others do not.
func TestPermitsExpiry(t *testing.T) {
	t.Parallel()
	client := clientAt(t, testenv.Redis(t).URL())
	ctx := t.Context()
	p := permitsOf(t, client, nil)
	between := func(key string, low, high time.Duration) {
		t.Helper()
		if ttl := client.PTTL(ctx, key).Val(); ttl < low || ttl > high {
			t.Errorf("%s lasts %v, want %v to %v", key, ttl, low, high)
		}
	}
	const never = -1
	must(t, p.SetRate(ctx, permitRate(3, time.Hour)))
	takesNow(t, p, 1, true)
	between(p.keys[0], never, never)
	between(p.keys[1], time.Hour, 62*time.Minute)
	if ok, err := p.Expire(ctx, 10*time.Minute); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	between(p.keys[0], time.Minute, 10*time.Minute)
	between(p.keys[1], time.Minute, 10*time.Minute)
	takesNow(t, p, 1, true)
	between(p.keys[1], time.Minute, 10*time.Minute)
	if ok, err := p.ClearExpire(ctx); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	between(p.keys[0], never, never)
	between(p.keys[1], time.Hour, 62*time.Minute)
	left(t, p, 1)
	r := permitRate(3, time.Hour)
	r.KeepAlive = 3 * time.Hour
	must(t, p.UpdateRate(ctx, r))
	between(p.keys[0], 2*time.Hour, 3*time.Hour)
	if got, err := p.Config(ctx); got != r || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	must(t, client.PExpire(ctx, p.keys[0], time.Minute).Err())
	takesNow(t, p, 3, false) // this counts as a use
	between(p.keys[0], 2*time.Hour, 3*time.Hour)
	must(t, p.UpdateRate(ctx, permitRate(3, time.Hour)))
	between(p.keys[0], never, never)
	left(t, p, 1)
	if ok, err := p.Expire(ctx, -time.Second); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	if _, err := p.AvailablePermits(ctx); !errors.Is(err, permits.ErrRateNotSet) {
		t.Errorf("expired at once: %v", err)
	}
}

// An unavailable Redis costs the timeout once, and then nothing until it returns.
func TestPermitsRedisAway(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	server := testenv.Redis(t)
	client := clientAt(t, server.URL())
	ctx := t.Context()
	p := permitsOf(t, client, func(c *PermitsConfig) { c.Timeout, c.Retry = 2*time.Second, time.Hour })
	must(t, p.SetRate(ctx, permitRate(3, time.Hour)))
	server.Pause()
	if ok, err := p.TryAcquire(ctx, 2); ok || err == nil || errors.Is(err, ErrUnavailable) {
		t.Errorf("the first: %v, %v", ok, err)
	}
	for range 100 {
		if err := p.Acquire(ctx, 1); !errors.Is(err, ErrUnavailable) {
			t.Fatalf("while Redis is away: %v", err)
		}
	}
	server.Resume()
	p = permitsOf(t, client, nil)
	eventually(t, "Redis again", func() bool { _, err := p.AvailablePermits(ctx); return err == nil })
	must(t, p.SetRate(ctx, permitRate(3, time.Hour))) // the first call may have taken some late
	// A call whose caller gave up is undone.
	for i := range 100 {
		ctx, cancel := context.WithTimeout(ctx, time.Duration(i)*5*time.Microsecond)
		if _, err := p.TryAcquire(ctx, 1); err == nil {
			must(t, p.Release(t.Context(), 1))
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		cancel()
	}
	left(t, p, 3)
}

// Redis and memory give the same results for any order of calls.
func TestPermitsLikeMemory(t *testing.T) {
	t.Parallel()
	client := clientAt(t, testenv.Redis(t).URL())
	ctx := t.Context()
	run := 0
	rapid.Check(t, func(r *rapid.T) {
		run++
		memory := permits.NewShared()
		type both struct{ memory, redis permits.RateLimiter }
		var clients []both
		for i := range 2 {
			clients = append(clients, both{memory(fmt.Sprint(i)), permitsOf(t, client, func(c *PermitsConfig) { c.Name = fmt.Sprint(run) })})
		}
		for range rapid.IntRange(1, 12).Draw(r, "calls") {
			c := clients[rapid.IntRange(0, 1).Draw(r, "client")]
			n := rapid.Int64Range(-1, 6).Draw(r, "n")
			rate := permitRate(max(n, 1), time.Hour)
			rate.PerClient = rapid.Bool().Draw(r, "per client")
			call := rapid.SampledFrom([]string{"try", "try", "try", "available", "release", "trySet", "set", "update", "delete", "expire", "clear", "config", "within"}).Draw(r, "call")
			do := func(p permits.RateLimiter) string {
				var answer any
				var err error
				switch call {
				case "try":
					answer, err = p.TryAcquire(ctx, n)
				case "within":
					answer, err = p.TryAcquireWithin(ctx, n, time.Minute)
				case "available":
					answer, err = p.AvailablePermits(ctx)
				case "release":
					err = p.Release(ctx, n)
				case "trySet":
					answer, err = p.TrySetRate(ctx, rate)
				case "set":
					err = p.SetRate(ctx, rate)
				case "update":
					err = p.UpdateRate(ctx, rate)
				case "delete":
					answer, err = p.Delete(ctx)
				case "expire":
					answer, err = p.Expire(ctx, time.Duration(max(n, 0))*time.Hour)
				case "clear":
					answer, err = p.ClearExpire(ctx)
				case "config":
					answer, err = p.Config(ctx)
				}
				for _, e := range []error{permits.ErrRateNotSet, permits.ErrTooMany, permits.ErrNone} {
					if errors.Is(err, e) {
						return e.Error()
					}
				}
				return fmt.Sprint(answer, err)
			}
			if want, got := do(c.memory), do(c.redis); want != got {
				r.Fatalf("%s(%d, %+v): Redis %s, memory %s", call, n, rate, got, want)
			}
		}
	})
}

func FuzzPermitRate(f *testing.F) {
	f.Add("3", "3600000000000", "1", "0")
	f.Add("-3", "x", "", "99999999999999999999")
	f.Fuzz(func(t *testing.T, n, per, client, keep string) {
		r, err := permitRateOf([]string{n, per, client, keep})
		if err == nil && r.Validate() != nil {
			t.Fatalf("%+v", r)
		}
	})
}
