package hotkeys

import (
	"context"
	"maps"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
)

// lastPush returns the newest change as it was pushed.
func lastPush(t *testing.T, client redis.UniversalClient) string {
	t.Helper()
	return client.XRevRangeN(context.Background(), testLayout.Events, "+", "-", 1).Val()[0].Values["change"].(string)
}

func wantHot(t *testing.T, r *recorder, want map[string]int64) {
	t.Helper()
	if got := r.limits(); !maps.Equal(got, want) {
		t.Fatalf("hot: %v, want %v", got, want)
	}
}

// follower is a publisher and a watcher that run step by step.
type follower struct {
	t      *testing.T
	client redis.UniversalClient
	p      *Publisher
	w      *Watcher
	r      *recorder
}

func newFollower(t *testing.T, client redis.UniversalClient) *follower {
	f := &follower{t: t, client: client, p: testPublisher(t, client, nil), r: newRecorder()}
	f.w = testWatcher(t, client, f.r)
	f.w.poller.timeout = patience
	f.publish(hots(hot(text(1), 100, 50)))
	f.poll()
	f.want(1)
	return f
}

func (f *follower) publish(c published.Change) {
	f.t.Helper()
	f.p.Publish(c)
	must(f.t, f.p.settle(context.Background()))
}

func (f *follower) poll() { f.t.Helper(); must(f.t, f.w.poll(context.Background())) }

func (f *follower) push(payload string) {
	f.t.Helper()
	if f.w.absorb(payload) {
		must(f.t, f.w.poll(context.Background()))
	}
}

func (f *follower) want(keys ...int) {
	f.t.Helper()
	want := make(map[string]int64)
	for _, i := range keys {
		want[text(i)] = 50
	}
	wantHot(f.t, f.r, want)
}

func TestPushAppliesTheNextChange(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		f := newFollower(t, client)
		resyncs := f.w.Stats().Resyncs
		f.publish(hots(hot(text(2), 100, 50)))
		push := lastPush(t, client)
		f.push(push)
		f.want(1, 2)
		f.publish(cools(hot(text(1), 1, 50)))
		f.push(lastPush(t, client))
		f.want(2)
		swaps := f.r.swaps
		f.push(push) // again, and old: ignored
		f.want(2)
		f.push(`{"version":`) // not ours
		if s := f.w.Stats(); f.r.swaps != swaps || s.Resyncs != resyncs || s.Gaps != 0 || s.Malformed != 1 {
			t.Errorf("%+v, %d swaps", s, f.r.swaps-swaps)
		}
		if f.r.version != version(t, client) {
			t.Errorf("told version %s, want %s", f.r.version, version(t, client))
		}
	})
}

func TestGapIsReadFromTheStream(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		f := newFollower(t, client)
		resyncs := f.w.Stats().Resyncs
		for i := 2; i < 6; i++ { // 1, 2, 3 cool; 5 stays
			f.publish(published.Change{Hot: []published.Hot{hot(text(i), 100, 50)}, Cool: []published.Hot{hot(text(i-1), 1, 50)}})
		}
		f.push(lastPush(t, client))
		f.want(5)
		f.publish(hots(hot(text(6), 100, 50))) // its push is lost: the poll repairs
		f.poll()
		f.want(5, 6)
		f.publish(hots(hot(text(7), 100, 50)))
		f.push(`{"version":"` + version(t, client) + `"}`) // too long to be pushed
		f.want(5, 6, 7)
		if s := f.w.Stats(); s.Gaps != 3 || s.Resyncs != resyncs {
			t.Errorf("%+v", s)
		}
	})
}

func TestTrimmedStreamMeansWholeSet(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(context.Context, redis.UniversalClient) error{
		"trimmed": func(ctx context.Context, c redis.UniversalClient) error {
			return c.XTrimMaxLen(ctx, testLayout.Events, 1).Err()
		},
		"a hole": func(ctx context.Context, c redis.UniversalClient) error {
			events := c.XRevRangeN(ctx, testLayout.Events, "+", "-", 2).Val()
			return c.XDel(ctx, testLayout.Events, events[1].ID).Err()
		},
		"deleted": func(ctx context.Context, c redis.UniversalClient) error { return c.Del(ctx, testLayout.Events).Err() },
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, client redis.UniversalClient) {
				f := newFollower(t, client)
				f.w.jitter = time.Millisecond
				resyncs := f.w.Stats().Resyncs
				for i := 2; i < 6; i++ {
					f.publish(published.Change{Hot: []published.Hot{hot(text(i), 100, 50)}, Cool: []published.Hot{hot(text(i-1), 1, 50)}})
				}
				must(t, damage(context.Background(), client))
				f.poll()
				f.want(5)
				if s := f.w.Stats(); s.Resyncs != resyncs+1 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

func TestAnotherRunMeansWholeSet(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		ctx := context.Background()
		f := newFollower(t, client)
		must(t, client.FlushAll(ctx).Err())
		f.poll()
		f.want(1) // never taken back: it stays until its end
		if f.w.Stats().Lost != 1 {
			t.Errorf("%+v", f.w.Stats())
		}
		f.p.Publish(published.Change{Hot: []published.Hot{hot(text(2), 100, 50)}, Cool: []published.Hot{hot(text(1), 1, 50)}})
		must(t, f.p.renew(ctx))
		f.push(lastPush(t, client))
		f.want(2)

		// A lower number of the same run means an old copy of Redis.
		v := parseVersion(t, client)
		f.publish(hots(hot(text(3), 100, 50)))
		f.poll()
		f.want(2, 3)
		must(t, client.Set(ctx, testLayout.Version, v.String(), 0).Err())
		member, instead := hot(text(3), 1, 1).Key.String(), hot(text(4), 1, 1).Key.String()
		info := client.HGet(ctx, testLayout.Info, member).Val()
		client.ZRem(ctx, testLayout.Hot, member)
		client.ZAdd(ctx, testLayout.Hot, redis.Z{Member: instead, Score: 1})
		client.HSet(ctx, testLayout.Info, instead, info)
		f.poll()
		f.want(2, 3) // its publisher will publish it again
		f.w.lostSince = time.Now().Add(-rewriteTime)
		f.poll()
		f.want(2, 4)

		// The same version with another set.
		member = hot(text(2), 1, 1).Key.String()
		client.ZRem(ctx, testLayout.Hot, member)
		f.poll()
		f.want(2, 4)
		f.w.lostSince = time.Now().Add(-rewriteTime)
		f.poll()
		f.want(4)
		f.poll()
		if !f.w.lostSince.IsZero() {
			t.Error("all is well, and it looks lost")
		}
	})
}

// A member that cannot be read does not affect others.
func TestUnreadableMember(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		ctx := context.Background()
		f := newFollower(t, client)
		must(t, client.ZAdd(ctx, testLayout.Hot, redis.Z{Member: "r no-info", Score: 1}).Err())
		f.poll()
		f.want(1)
		resyncs := f.w.Stats().Resyncs
		f.poll()
		if s := f.w.Stats(); s.Resyncs != resyncs {
			t.Errorf("reads the whole set again and again: %+v", s)
		}
	})
}

func TestList(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		ctx := context.Background()
		if got, err := List(ctx, client, testNamespace); err != nil || len(got) != 0 {
			t.Errorf("nothing published: %v, %v", got, err)
		}
		p := testPublisher(t, client, nil)
		p.Publish(hots(hot(text(1), 100, 50), hot(text(2), 300, 50), hot(text(3), 200, 50)))
		must(t, p.settle(ctx))
		got, err := List(ctx, client, testNamespace)
		must(t, err)
		if len(got) != 3 || got[0].Text != text(2) || got[1].Text != text(3) || got[2].Text != text(1) || got[0].Rate != 300 || got[0].Owner != "statsd" {
			t.Errorf("got %+v", got)
		}
		must(t, client.Del(ctx, testLayout.Beat).Err())
		if got, err := List(ctx, client, testNamespace); err != nil || len(got) != 0 {
			t.Errorf("no publisher lives: %v, %v", got, err)
		}
		if _, err := List(ctx, client, "a b"); err == nil {
			t.Error("a bad namespace was taken")
		}
	})
}

// deafClient makes its first subscription at another server than the one it asks.
type deafClient struct {
	redis.UniversalClient
	elsewhere redis.UniversalClient
	times     atomic.Int32
}

func (c *deafClient) Subscribe(ctx context.Context, channels ...string) *redis.PubSub {
	if c.times.Add(1) == 1 {
		return c.elsewhere.Subscribe(ctx, channels...)
	}
	return c.UniversalClient.Subscribe(ctx, channels...)
}

// A subscription on a server without a publisher is given up. One that is merely quiet is not.
func TestDeafSubscription(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	server := testenv.Redis(t)
	client := &deafClient{UniversalClient: testClient(t, server.URL()), elsewhere: testClient(t, testenv.Redis(t).URL())}
	seen := newRecorder()
	const poll = 200 * time.Millisecond
	w, err := NewWatcher(client, WatcherConfig{Namespace: testNamespace, Poll: poll}, seen)
	must(t, err)
	testenv.Running(t, w.Run)
	p := testPublisher(t, testClient(t, server.URL()), nil)
	testenv.Running(t, p.Run)
	for n, from := int64(1), time.Now(); w.Stats().Pushes == 0; n++ {
		if time.Since(from) > patience {
			t.Fatalf("it hears nothing: %+v", w.Stats())
		}
		p.Publish(hots(hot(text(1), 100, n)))
		seen.await(t, "a change", func(hot map[string]published.Hot) bool { return hot[text(1)].Limit.N == n })
	}
	time.Sleep(5 * poll) // the last misses are made up for, and nothing changes
	subscribed := client.times.Load()
	for n := int64(1); n <= 20; n++ {
		p.Publish(hots(hot(text(2), 100, n)))
		seen.await(t, "a change", func(hot map[string]published.Hot) bool { return hot[text(2)].Limit.N == n })
		time.Sleep(poll / 4)
	}
	if subscribed != 2 || client.times.Load() != 2 {
		t.Errorf("subscribed %d times, then %d: want once more than the first, and no more", subscribed, client.times.Load())
	}
}

// bubbleClient returns a client of a miniredis inside a synctest bubble, where time passes at once.
func bubbleClient(t *testing.T, m *miniredis.Miniredis) *redis.Client {
	t.Helper()
	return redis.NewClient(&redis.Options{
		Addr:                     "127.0.0.1:6379", // a name would be looked up, outside of the bubble
		MaxRetries:               -1,
		ContextTimeoutEnabled:    true,
		Dialer:                   func(context.Context, string, string) (net.Conn, error) { return m.Dial() },
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

func bubble(t *testing.T, test func(t *testing.T, m *miniredis.Miniredis, client *redis.Client)) {
	synctest.Test(t, func(t *testing.T) {
		m := miniredis.NewMiniRedis()
		defer m.Close()
		m.ClockTTL(true)
		client := bubbleClient(t, m)
		defer client.Close()
		test(t, m, client)
	})
}

// While a publisher renews, entries stay in force far beyond their first end. When it dies, all of
// them end with the heartbeat, without any message from Redis.
func TestFadesWithTheHeartbeat(t *testing.T) {
	bubble(t, func(t *testing.T, m *miniredis.Miniredis, client *redis.Client) {
		p := testPublisher(t, client, nil)
		r := newRecorder()
		w := testWatcher(t, client, r)
		stopWatcher := testenv.Running(t, w.Run)
		stopPublisher := testenv.Running(t, p.Run)
		p.Publish(hots(hot(text(1), 100, 50)))
		synctest.Wait()
		wantHot(t, r, map[string]int64{text(1): 50})
		for range 120 {
			time.Sleep(time.Second)
			synctest.Wait()
			wantHot(t, r, map[string]int64{text(1): 50})
		}
		if s := w.Stats(); !s.Connected || s.Errors != 0 || s.Resyncs > 2 || s.Keys != 1 {
			t.Errorf("%+v", s)
		}
		stopPublisher()
		died := time.Now()
		m.SetError("LOADING gone") // nothing can be read any more
		time.Sleep(3 * time.Second)
		synctest.Wait()
		wantHot(t, r, map[string]int64{text(1): 50})
		r.await(t, "the end", has())
		if took := time.Since(died); took > 5*time.Second {
			t.Errorf("faded after %v, want at most the heartbeat's 5s", took)
		}
		if s := w.Stats(); s.Connected || s.Errors == 0 || s.Keys != 0 {
			t.Errorf("%+v", s)
		}
		stopWatcher()
	})
}

// twoLive starts a watcher and two publishers, of keys 1 and 2. kill ends the second publisher, and
// stop ends all three.
func twoLive(t *testing.T, client redis.UniversalClient, r *recorder) (w *Watcher, first *Publisher, kill, stop func()) {
	w = testWatcher(t, client, r)
	first = testPublisher(t, client, nil)
	second := testPublisher(t, client, func(c *PublisherConfig) { c.Owner = "kafka-1" })
	stopWatcher, stopFirst := testenv.Running(t, w.Run), testenv.Running(t, first.Run)
	kill = testenv.Running(t, second.Run)
	first.Publish(hots(hot(text(1), 100, 50)))
	second.Publish(hots(hot(text(2), 100, 50)))
	r.await(t, "both", has(text(1), text(2)))
	return w, first, kill, func() {
		kill()
		stopFirst()
		stopWatcher()
	}
}

// An entry that is no longer renewed ends on time although another publisher is alive. That
// publisher then removes it.
func TestFadesAtItsOwnEnd(t *testing.T) {
	bubble(t, func(t *testing.T, m *miniredis.Miniredis, client *redis.Client) {
		r := newRecorder()
		_, alive, kill, stop := twoLive(t, client, r)
		defer stop()
		for range 20 {
			time.Sleep(time.Second)
		}
		kill()
		died := time.Now()
		wantHot(t, r, map[string]int64{text(1): 50, text(2): 50})
		r.await(t, "the end of the dead one's", has(text(1)))
		if took := time.Since(died); took > 15*time.Second || took < 13*time.Second {
			t.Errorf("faded after %v, want the 15s of its last renewal", took)
		}
		time.Sleep(6 * time.Second)
		synctest.Wait()
		wantInRedis(t, client, map[string]int64{text(1): 50})
		if alive.Stats().Pruned != 1 {
			t.Errorf("%+v", alive.Stats())
		}
	})
}

// A watcher keeps to the same ends if the clock of Redis is hours off.
func TestClocksThatDisagree(t *testing.T) {
	bubble(t, func(t *testing.T, m *miniredis.Miniredis, client *redis.Client) {
		m.SetTime(time.Now().Add(-5 * time.Hour))
		f := newFollower(t, client)
		got := f.r.now()[text(1)]
		if left := time.Until(got.Until); left > 15*time.Second || left < 14*time.Second {
			t.Errorf("%v are left, want the entry's 15s", left)
		}
		// A push that was 4 s in flight has 4 s less.
		f.publish(hots(hot(text(2), 100, 50)))
		push := lastPush(t, client)
		time.Sleep(4 * time.Second)
		f.push(push)
		if left := time.Until(f.r.now()[text(2)].Until); left != 11*time.Second {
			t.Errorf("%v are left, want 11s", left)
		}
		if !strings.Contains(push, `"ttl_ms":15000`) {
			t.Errorf("pushed %s", push)
		}
	})
}

// While Redis is unavailable, changes accumulate. They are published soon after its return.
func TestOutageIsBridged(t *testing.T) {
	bubble(t, func(t *testing.T, m *miniredis.Miniredis, client *redis.Client) {
		p := testPublisher(t, client, nil)
		r := newRecorder()
		w := testWatcher(t, client, r)
		stop := testenv.Running(t, p.Run)
		defer testenv.Running(t, w.Run)()
		p.Publish(hots(hot(text(1), 100, 50)))
		r.await(t, "the first", has(text(1)))
		m.SetError("LOADING away")
		for i := range 3000 {
			p.Publish(hots(hot(text(i%3), 100, 50)))
			p.Publish(cools(hot(text(i%3), 100, 50)))
		}
		p.Publish(hots(hot(text(7), 100, 50)))
		time.Sleep(3 * time.Second)
		before := p.Stats()
		if before.Connected || before.Failures < 4 || before.Failures > 10 {
			t.Errorf("%+v: want tries at 50, 100, 200, 400, 500, 500 … ms", before)
		}
		m.SetError("")
		back := time.Now()
		r.await(t, "the last state", has(text(7)))
		// The publisher waits for a second at most. The watcher may lose one call to its timeout
		// (1.5 s) and then polls within a second. A pipe still holds the rest of a transaction that
		// was refused at its MULTI, and the pool cannot notice that.
		if took := time.Since(back); took > 3500*time.Millisecond {
			t.Errorf("took %v", took)
		}
		// A script that Redis runs only now must be refused.
		if epoch := client.HGet(context.Background(), testLayout.Owners, "statsd").Val(); epoch != "2" {
			t.Errorf("epoch %s, want a new claim after the outage", epoch)
		}
		synctest.Wait() // the push may be here before the publisher has its own answer
		if s := p.Stats(); !s.Connected || s.FencedBy != "" || s.Changes != before.Changes+1 {
			t.Errorf("%+v after %+v", s, before)
		}
		// Changes that are pending at the end are still published.
		p.Publish(hots(hot(text(8), 100, 50)))
		stop()
		wantInRedis(t, client, map[string]int64{text(7): 50, text(8): 50})
	})
}

// A real Redis is killed, restarted, paused and flushed.
func TestWatcherSurvivesRedis(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	server := testenv.Redis(t)
	p := testPublisher(t, testClient(t, server.URL()), func(c *PublisherConfig) { c.BeatTTL, c.Timeout = 2*time.Second, 0 })
	r := newRecorder()
	w := testWatcher(t, testClient(t, server.URL()), r)
	defer testenv.Running(t, w.Run)()
	stopPublisher := testenv.Running(t, p.Run)
	step := func(i int, what string) {
		t.Helper()
		p.Publish(published.Change{Hot: []published.Hot{hot(text(i), 100, 50)}, Cool: []published.Hot{hot(text(i-1), 100, 50)}})
		from := time.Now()
		r.await(t, what, has(text(i)))
		t.Logf("%s: in force after %v", what, time.Since(from).Round(time.Millisecond))
	}
	step(1, "first change")
	step(2, "second change")
	server.Flush()
	step(3, "after a flush")
	server.Restart()
	step(4, "after a restart")
	server.Pause()
	p.Publish(hots(hot(text(9), 100, 50)))
	r.await(t, "fading while Redis is frozen", has())
	server.Resume()
	r.await(t, "all of it back", has(text(4), text(9)))
	p.Publish(cools(hot(text(9), 100, 50)))
	step(5, "after a pause")
	server.Kill()
	r.await(t, "fading while Redis is gone", has())
	server.Restart()
	step(6, "after a death")
	for end := time.Now().Add(patience); !w.Stats().Connected && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // a poll may bring the set before the subscription is back
	}
	if s := w.Stats(); !s.Connected || s.Malformed != 0 {
		t.Errorf("%+v", s)
	}
	stopPublisher() // by then it has recorded all answers
	if s := p.Stats(); s.FencedBy != "" || s.Rewrites < 3 {
		t.Errorf("%+v", s)
	}
	r.await(t, "fading without the publisher", has())
}

// Each end is kept. An entry that is reported as in force ends in the future, at most its time to
// live from now.
func TestNothingOutlivesItsEnd(t *testing.T) {
	var s state
	s.entries = make(map[string]*heldEntry)
	now := time.Now()
	s.beat = now.Add(5 * time.Second)
	s.grant(hot("a", 1, 1), 15*time.Second, now)
	s.grant(hot("b", 1, 1), 3*time.Second, now)
	s.grant(hot("c", 1, 1), -time.Second, now)
	told := 0
	for _, tt := range []struct {
		at   time.Duration
		want int
		next time.Duration
	}{{0, 2, 3 * time.Second}, {3*time.Second - 1, 2, 3 * time.Second}, {3 * time.Second, 1, 5 * time.Second}, {5*time.Second - 1, 1, 5 * time.Second}, {5 * time.Second, 0, 0}} {
		change, next := s.nextChange(now.Add(tt.at))
		got := s.inForce
		if told += len(change.Hot) - len(change.Cool); got != tt.want || told != tt.want || tt.want > 0 && next.Sub(now) != tt.next {
			t.Errorf("at %v: %d in force until %v and %d told, want %d until %v", tt.at, got, next.Sub(now), told, tt.want, tt.next)
		}
	}
	if got := s.dueForRenewal(now.Add(2 * time.Second)); len(got) != 1 || !strings.HasSuffix(got[0], " b") {
		t.Errorf("ending: %q", got)
	}
	s.applyChange(&published.Push{Version: published.Version{Run: "x", N: 2}, At: now, Beat: time.Second}, now)
	if !s.beat.Equal(now.Add(5 * time.Second)) {
		t.Error("a change took time from the heartbeat")
	}
}
