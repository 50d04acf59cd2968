package redislimiter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/rules"
)

// semaphoreOf returns a semaphore with a long timeout, like one process's.
func semaphoreOf(tb testing.TB, client redis.UniversalClient, edit func(*SemaphoreConfig)) *Semaphore {
	tb.Helper()
	cfg := SemaphoreConfig{Namespace: namespaceOf(tb), Name: "api-1", Lease: time.Minute, Timeout: patience}
	if edit != nil {
		edit(&cfg)
	}
	s, err := NewSemaphore(client, cfg)
	must(tb, err)
	return s
}

// noLease is the lease of a denied caller.
var noLease semaphore.Lease

// want acquires, and fails the test on an error.
func want(tb testing.TB, s *Semaphore, ask semaphore.Request) (semaphore.Lease, rules.Decision) {
	tb.Helper()
	lease, d, err := s.Acquire(context.Background(), "k", ask)
	must(tb, err)
	if (lease != noLease) != d.Allowed {
		tb.Fatalf("lease %v, %+v", lease, d)
	}
	return lease, d
}

func holds(tb testing.TB, s *Semaphore, ask semaphore.Request) semaphore.Lease {
	tb.Helper()
	l, d := want(tb, s, ask)
	if l == noLease {
		tb.Fatalf("%+v: %+v, want a lease", ask, d)
	}
	return l
}

// newest returns the latest of the leases that s holds.
func newest(s *Semaphore) *heldLease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.MaxFunc(slices.Collect(maps.Keys(s.held)), func(a, b *heldLease) int { return a.granted.Compare(b.granted) })
}

func busy(tb testing.TB, s *Semaphore, ask semaphore.Request) rules.Decision {
	tb.Helper()
	l, d := want(tb, s, ask)
	if l != noLease {
		tb.Fatalf("%+v: %+v, want busy", ask, d)
	}
	if d.Reason != rules.ReasonBusy || d.Limit != ask.Permits || d.RetryAfter < time.Millisecond {
		tb.Errorf("%+v: %+v", ask, d)
	}
	return d
}

func isLost(l semaphore.Lease) bool {
	select {
	case <-l.Lost():
		return true
	default:
		return false
	}
}

// waits asks in a goroutine, and returns once the request is in the line.
func waits(tb testing.TB, s *Semaphore, ctx context.Context, ask semaphore.Request, then func(semaphore.Lease, rules.Decision, error)) (done <-chan struct{}) { //nolint:revive // the test comes first
	tb.Helper()
	ask.Queue, ask.Within = max(ask.Queue, 100), max(ask.Within, patience)
	before, over := s.Stats().Waiting, make(chan struct{})
	go func() {
		defer close(over)
		then(s.Acquire(ctx, "k", ask))
	}()
	eventually(tb, "a place in the line", func() bool { return s.Stats().Waiting == before+1 })
	return over
}

func semaphoreTable(t *testing.T, client redis.UniversalClient) {
	a, b := semaphoreOf(t, client, nil), semaphoreOf(t, client, nil)
	three := semaphore.Request{Permits: 3}
	one := holds(t, a, three)
	holds(t, b, three)
	if _, d := want(t, b, three); d != (rules.Decision{Allowed: true, Reason: rules.ReasonWithin, Limit: 3}) {
		t.Errorf("the last one: %+v", d)
	}
	if d := busy(t, b, three); d.Remaining != 0 {
		t.Errorf("%+v", d)
	}
	busy(t, b, semaphore.Request{Permits: 3, Within: time.Hour}) // there is no line
	busy(t, a, semaphore.Request{Permits: 3, Within: time.Millisecond, Queue: 1})
	four := holds(t, a, semaphore.Request{Permits: 4}) // a raised number holds at once
	busy(t, b, semaphore.Request{Permits: 1})          // and so does a lower one
	one.Release()
	one.Release()
	busy(t, b, three) // counted once: four and the two are held
	four.Release()
	if _, d := want(t, b, three); !d.Allowed || d.Remaining != 0 {
		t.Errorf("the one that came back: %+v", d)
	}
	_, _, err := a.Acquire(t.Context(), "other {key}\x00", semaphore.Request{Permits: 1})
	must(t, err)
	s := a.Stats()
	if s.Held != 1 || s.Granted != 3 || s.Denied != 1 || s.Lost+s.Failures+s.Expired != 0 {
		t.Errorf("%+v", s)
	}
}

func TestSemaphoreArguments(t *testing.T) {
	s := semaphoreOf(t, clientAt(t, "redis://localhost:1"), nil) // Redis is not asked
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		key  string
		ask  semaphore.Request
		want error
	}{
		"no key":      {t.Context(), "", semaphore.Request{Permits: 1}, limiter.ErrNoKey},
		"no permits":  {t.Context(), "k", semaphore.Request{Permits: 0}, nil},
		"too many":    {t.Context(), "k", semaphore.Request{Permits: math.MaxInt64}, nil},
		"ended":       {ended, "k", semaphore.Request{Permits: 1}, context.Canceled},
		"nobody here": {t.Context(), "k", semaphore.Request{Permits: 1, Class: -1, Queue: -1, Within: -1}, nil},
	} {
		lease, d, err := s.Acquire(test.ctx, test.key, test.ask)
		if err == nil || lease != noLease || d != (rules.Decision{}) || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%s: %v, %+v, %v", name, lease, d, err)
		}
	}
	for name, edit := range map[string]func(*SemaphoreConfig){
		"Namespace": func(c *SemaphoreConfig) { c.Namespace = "{}" },
		"Name":      func(c *SemaphoreConfig) { c.Name = "a b" },
		"Lease":     func(c *SemaphoreConfig) { c.Lease = time.Hour },
		"Timeout":   func(c *SemaphoreConfig) { c.Timeout = -1 },
	} {
		cfg := SemaphoreConfig{Namespace: "shop"}
		edit(&cfg)
		if _, err := NewSemaphore(s.client, cfg); err == nil || !strings.Contains(err.Error(), "SemaphoreConfig."+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewSemaphore(redis.NewClusterClient(&redis.ClusterOptions{}), SemaphoreConfig{Namespace: "shop"}); err == nil {
		t.Error("a client without deadlines: no error")
	}
}

// [F7] Permits of a crashed holder are free after its lease. Permits of a live holder are not.
func TestSemaphoreCrash(t *testing.T) {
	t.Parallel()
	client := clientAt(t, testenv.Redis(t).URL())
	lasts := func(d time.Duration) func(*SemaphoreConfig) { return func(c *SemaphoreConfig) { c.Lease = d } }
	alive, crashed, other := semaphoreOf(t, client, lasts(10*time.Second)), semaphoreOf(t, client, lasts(time.Second)), semaphoreOf(t, client, nil)
	testenv.Running(t, alive.Run)
	kept := holds(t, alive, semaphore.Request{Permits: 3})
	known := newest(alive)
	ends := func() float64 { return client.ZScore(t.Context(), known.key, known.member).Val() }
	first := ends()
	start := time.Now()
	holds(t, crashed, semaphore.Request{Permits: 3})
	holds(t, crashed, semaphore.Request{Permits: 3}) // and falls silent
	l, second := holds(t, other, semaphore.Request{Permits: 3, Within: patience, Queue: 1}), holds(t, other, semaphore.Request{Permits: 3, Within: patience, Queue: 1})
	if d := time.Since(start); d < time.Second {
		t.Errorf("free after %v, and the lease was a second", d)
	}
	eventually(t, "a renewal", func() bool { return ends() > first })
	if s := other.Stats(); s.Expired != 2 {
		t.Errorf("%+v, want two expired", s)
	}
	busy(t, crashed, semaphore.Request{Permits: 3})
	if isLost(kept) || isLost(l) {
		t.Errorf("lost: %v %v", isLost(kept), isLost(l))
	}
	l.Release()
	second.Release()
	kept.Release()
	if n := client.ZCard(t.Context(), semaphoreKey(namespaceOf(t), "k")).Val(); n != 0 {
		t.Errorf("%d members are left", n)
	}
}

// A holder learns that Redis has no trace of its lease. Releasing that lease takes nothing from
// others.
func TestSemaphoreLost(t *testing.T) {
	t.Parallel()
	client := clientAt(t, testenv.Redis(t).URL())
	var log testenv.LogBuffer
	s := semaphoreOf(t, client, func(c *SemaphoreConfig) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	other := semaphoreOf(t, client, nil)
	l := holds(t, s, semaphore.Request{Permits: 1})
	if !s.renew(t.Context()) || isLost(l) {
		t.Error("not renewed")
	}
	must(t, client.Del(t.Context(), newest(s).key).Err())
	holds(t, other, semaphore.Request{Permits: 1})
	if !s.renew(t.Context()) || !isLost(l) {
		t.Error("nobody told the holder")
	}
	l.Release()
	busy(t, s, semaphore.Request{Permits: 1})
	if got := s.Stats(); got.Lost != 1 || got.Held != 0 {
		t.Errorf("%+v", got)
	}
	if text := log.String(); strings.Count(text, "lost") == 0 {
		t.Errorf("log: %q", text)
	}
}

// While Redis is unavailable, only the first call waits and the others fail at once. Holders learn
// of it before their leases end. Everything works again once Redis returns.
func TestSemaphoreRedisAway(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	server := testenv.Redis(t)
	client := clientAt(t, server.URL())
	var log testenv.LogBuffer
	s := semaphoreOf(t, client, func(c *SemaphoreConfig) {
		c.Lease, c.Timeout = 3*time.Second, 500*time.Millisecond
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	testenv.Running(t, s.Run)
	kept, released := holds(t, s, semaphore.Request{Permits: 2}), holds(t, s, semaphore.Request{Permits: 2})
	server.Pause()
	for range 50 {
		if _, _, err := s.Acquire(t.Context(), "k", semaphore.Request{Permits: 9}); err == nil {
			t.Fatal("no error")
		}
	}
	released.Release()
	if got := s.Stats(); got.Refused != 50 || got.Failures == 0 {
		t.Errorf("%+v, want all but the first refused", got)
	}
	<-kept.Lost()
	server.Resume()
	eventually(t, "all to be given back", func() bool {
		l, _, err := s.Acquire(t.Context(), "k", semaphore.Request{Permits: 1})
		if l != noLease {
			l.Release()
		}
		return err == nil && l != noLease && s.Stats().Owed == 0
	})
	if got := s.Stats(); got.Lost != 1 || got.Held != 0 {
		t.Errorf("%+v", got)
	}
	eventually(t, "as many ends of an outage as beginnings in the log", func() bool {
		text := log.String()
		return strings.Count(text, "does not answer") == strings.Count(text, "answers again")
	})
}

// All processes together never hold more than there are, and all are served.
func semaphoreNeverExceeds(t *testing.T, client redis.UniversalClient) {
	const permits, processes, each = 4, 10, 5
	var held, most atomic.Int64
	var wg sync.WaitGroup
	for p := range processes {
		s := semaphoreOf(t, client, func(c *SemaphoreConfig) { c.Name = fmt.Sprintf("api-%d", p) })
		if p%3 > 0 { // some do without renewals and hints
			testenv.Running(t, s.Run)
		}
		for i := range each {
			wg.Go(func() {
				for range 4 {
					l, _, err := s.Acquire(context.Background(), "k", semaphore.Request{Permits: permits, Queue: each, Within: 3 * patience, Class: i})
					if err != nil || l == noLease {
						t.Errorf("process %d: %v, %v", p, l, err)
						return
					}
					most.Store(max(most.Load(), held.Add(1)))
					if now := held.Load(); now > permits {
						t.Errorf("%d permits are held", now)
					}
					time.Sleep(time.Millisecond)
					held.Add(-1)
					l.Release()
				}
			})
		}
	}
	wg.Wait()
	if most.Load() < 2 {
		t.Errorf("at most %d were held at a time", most.Load())
	}
	if n := client.ZCard(t.Context(), semaphoreKey(namespaceOf(t), "k")).Val(); n != 0 {
		t.Errorf("%d members are left", n)
	}
}

// [F7] The line is ordered by class, then by arrival. Each waits for as long as it asked for, and
// no one overtakes.
func TestSemaphoreLine(t *testing.T) {
	t.Parallel()
	client := clientAt(t, testenv.Redis(t).URL())
	s := semaphoreOf(t, client, nil)
	testenv.Running(t, s.Run)
	l := holds(t, s, semaphore.Request{Permits: 1})
	order := make(chan string, 10)
	var all []<-chan struct{}
	for _, w := range []struct {
		name  string
		class int
	}{{"b1", 1}, {"c1", 2}, {"a1", 0}, {"b2", 1}, {"a2", 0}, {"c2", 99}} {
		all = append(all, waits(t, s, t.Context(), semaphore.Request{Permits: 1, Class: w.class}, func(l semaphore.Lease, _ rules.Decision, err error) {
			if err != nil || l == noLease {
				t.Errorf("%s: %v, %v", w.name, l, err)
				return
			}
			order <- w.name
			l.Release()
		}))
	}
	busy(t, s, semaphore.Request{Permits: 1, Queue: 6, Within: time.Hour}) // full
	if d := busy(t, s, semaphore.Request{Permits: 1, Class: 1}); d.RetryAfter < time.Millisecond {
		t.Errorf("%+v", d)
	}
	l.Release()
	for _, done := range all {
		<-done
	}
	close(order)
	var got []string
	for name := range order {
		got = append(got, name)
	}
	if fmt.Sprint(got) != "[a1 a2 b1 b2 c1 c2]" {
		t.Errorf("served in the order %v", got)
	}
	for i := range s.stripes {
		if n := len(s.stripes[i].keys); n != 0 || s.Stats().Waiting != 0 {
			t.Errorf("%d lines are left", n)
		}
	}
}

// A waiter that gives up takes nothing, and the next one is served.
func TestSemaphoreContextEnds(t *testing.T) {
	t.Parallel()
	client := clientAt(t, testenv.Redis(t).URL())
	s := semaphoreOf(t, client, nil)
	testenv.Running(t, s.Run)
	l := holds(t, s, semaphore.Request{Permits: 1})
	ctx, cancel := context.WithCancel(t.Context())
	first := waits(t, s, ctx, semaphore.Request{Permits: 1}, func(l semaphore.Lease, _ rules.Decision, err error) {
		if l != noLease || !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v, %v", l, err)
		}
	})
	var second semaphore.Lease
	next := waits(t, s, t.Context(), semaphore.Request{Permits: 1}, func(l semaphore.Lease, _ rules.Decision, _ error) { second = l })
	cancel()
	<-first
	l.Release()
	<-next
	if second == noLease {
		t.Fatal("the next one was not served")
	}
	second.Release()
	// A call cancelled at any time returns its permits.
	for i := range 50 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*20*time.Microsecond)
		l, _, err := s.Acquire(ctx, "k", semaphore.Request{Permits: 1, Within: patience, Queue: 1})
		if err == nil {
			l.Release()
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		cancel()
	}
	eventually(t, "all to be given back", func() bool {
		l, d := want(t, s, semaphore.Request{Permits: 1})
		if d.Allowed {
			l.Release()
		}
		return d.Allowed
	})
}

// A changed number of permits also applies to waiting requests.
func TestSemaphorePermitsChange(t *testing.T) {
	t.Parallel()
	client := clientAt(t, testenv.Redis(t).URL())
	s := semaphoreOf(t, client, nil)
	holds(t, s, semaphore.Request{Permits: 1})
	var served semaphore.Lease
	done := waits(t, s, t.Context(), semaphore.Request{Permits: 1}, func(l semaphore.Lease, _ rules.Decision, _ error) { served = l })
	busy(t, s, semaphore.Request{Permits: 2})
	<-done
	if served == noLease {
		t.Error("one waits though there are two now")
	}
}

// A hint that a permit is free goes to the process that has waited longest. If that process has no
// waiters left, the hint goes to the next.
func semaphoreHints(t *testing.T, client redis.UniversalClient) {
	holder := semaphoreOf(t, client, nil)
	var waiting []*Semaphore
	for range 3 {
		s := semaphoreOf(t, client, nil)
		testenv.Running(t, s.Run)
		eventually(t, "the subscription", s.hearing.Load)
		waiting = append(waiting, s)
	}
	l := holds(t, holder, semaphore.Request{Permits: 1})
	ctx, cancel := context.WithCancel(t.Context())
	gone := waits(t, waiting[0], ctx, semaphore.Request{Permits: 1}, func(semaphore.Lease, rules.Decision, error) {})
	cancel()
	<-gone
	served := make(chan int, 2)
	for i, s := range waiting[1:] {
		waits(t, s, t.Context(), semaphore.Request{Permits: 1}, func(l semaphore.Lease, _ rules.Decision, err error) {
			if err != nil || l == noLease {
				t.Errorf("%v, %v", l, err)
				return
			}
			served <- i
			l.Release()
		})
	}
	l.Release()
	for range 2 {
		select {
		case <-served:
		case <-time.After(patience):
			t.Fatal("not served")
		}
	}
}

// The longest waiter has the next turn. Other processes learn of it through the channel, the caller
// from the answer.
func TestSemaphoreTurns(t *testing.T) {
	t.Parallel()
	client := clientAt(t, testenv.Redis(t).URL())
	ctx := t.Context()
	s := semaphoreOf(t, client, nil)
	key := semaphoreKey(s.cfg.Namespace, "k")
	sub := client.Subscribe(ctx, s.channel)
	defer sub.Close()
	_, err := sub.ReceiveTimeout(ctx, patience)
	must(t, err)
	var all []*heldLease
	for range 4 {
		holds(t, s, semaphore.Request{Permits: 4})
		all = append(all, newest(s))
	}
	for _, process := range []string{"a", "b", s.process} { // they wait, and stay in the line for an hour
		c := call{script: semaphoreAcquire, keys: semaphoreKeys(key), args: []any{process + "/1", 4, 1_000_000, process, time.Hour.Microseconds(), "", 0}}
		must(t, run(ctx, client, &c))
	}
	for i, want := range []struct {
		turn int64
		told string
	}{{0, "a"}, {0, "b"}, {turnOurs, ""}, {turnNobody, ""}} {
		turn, err := s.callRelease(ctx, key, all[i].member)
		if err != nil || turn != want.turn {
			t.Errorf("release %d: %d, %v, want %d", i, turn, err, want.turn)
		}
		if want.told == "" {
			continue
		}
		message, err := sub.ReceiveTimeout(ctx, patience)
		if m, ok := message.(*redis.Message); err != nil || !ok || m.Payload != want.told+" "+key {
			t.Errorf("release %d: told %v, %v, want %s", i, message, err, want.told)
		}
	}
	if turn, err := s.callRelease(ctx, key, all[0].member); turn != 0 || err != nil {
		t.Errorf("what was not there: %d, %v", turn, err)
	}
}

// A changed number of permits makes the first in line ask at once.
func TestSemaphoreLooksAtOnce(t *testing.T) {
	s := semaphoreOf(t, clientAt(t, "redis://localhost:1"), nil)
	w := func() *waiter {
		return &waiter{key: "k", maxQueue: 9, seq: s.seq.Add(1), wake: make(chan struct{}, 1)}
	}
	first := w()
	s.addWaiter(first, 1)
	for _, permits := range []int64{1, 2, 2, 1} {
		_, before := s.checkTurn(first)
		s.enter(w(), permits)
		if got := len(first.wake) == 1; got != (permits != before) {
			t.Errorf("%d permits after %d: told %v", permits, before, got)
		}
		select {
		case <-first.wake:
		default:
		}
	}
}

// Without hints the first in line notices a free permit on its own.
func TestSemaphoreWithoutHints(t *testing.T) {
	t.Parallel()
	client := clientAt(t, testenv.Redis(t).URL())
	holder, s := semaphoreOf(t, client, nil), semaphoreOf(t, client, nil)
	for _, hearing := range []bool{false, true} { // true: it assumes that hints arrive, but they do not
		s.hearing.Store(hearing)
		l := holds(t, holder, semaphore.Request{Permits: 1})
		var served semaphore.Lease
		done := waits(t, s, t.Context(), semaphore.Request{Permits: 1}, func(l semaphore.Lease, _ rules.Decision, _ error) { served = l })
		l.Release()
		<-done
		if served == noLease {
			t.Fatal("not served")
		}
		served.Release()
	}
}

// On shutdown all leases are released, and their holders are notified.
func TestSemaphoreShutdown(t *testing.T) {
	t.Parallel()
	client := clientAt(t, testenv.Redis(t).URL())
	s, other := semaphoreOf(t, client, nil), semaphoreOf(t, client, nil)
	stop := testenv.Running(t, s.Run)
	l := holds(t, s, semaphore.Request{Permits: 1})
	stop()
	if !isLost(l) {
		t.Error("the holder was not told")
	}
	holds(t, other, semaphore.Request{Permits: 1})
	l.Release()
	busy(t, s, semaphore.Request{Permits: 1})
	if got := s.Stats(); got.Held+got.Owed != 0 || got.Lost != 0 {
		t.Errorf("%+v", got)
	}
}

// Scripts that Redis has forgotten are sent again, even in pipelines.
func TestSemaphoreScriptsFlushed(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	client := clientAt(t, server.URL())
	s := semaphoreOf(t, client, nil)
	l := holds(t, s, semaphore.Request{Permits: 1})
	must(t, client.ScriptFlush(t.Context()).Err())
	if !s.renew(t.Context()) || isLost(l) {
		t.Error("not renewed")
	}
	must(t, client.ScriptFlush(t.Context()).Err())
	l.Release()
	holds(t, s, semaphore.Request{Permits: 1})
	if got := s.Stats(); got.Failures != 0 {
		t.Errorf("%+v", got)
	}
}
