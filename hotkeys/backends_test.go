package hotkeys

import (
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
)

// onBackends runs a test, in parallel, on every kind of Redis deployment that users have.
func onBackends(t *testing.T, test func(t *testing.T, config ClientConfig)) {
	for name, start := range map[string]func(*testing.T) ClientConfig{
		"single":   func(t *testing.T) ClientConfig { return ClientConfig{URL: testenv.Redis(t).URL()} },
		"database": func(t *testing.T) ClientConfig { return ClientConfig{URL: testenv.Redis(t).URL() + "?db=3"} },
		"TLS": func(t *testing.T) ClientConfig {
			files := testenv.Certificates(t)
			return ClientConfig{URL: testenv.RedisTLS(t, files).URL(), CA: files.CA, Cert: files.ClientCert, Key: files.ClientKey}
		},
		"sentinel": func(t *testing.T) ClientConfig { return ClientConfig{URL: testenv.RedisSentinel(t).URL()} },
		"cluster":  func(t *testing.T) ClientConfig { return ClientConfig{URL: testenv.RedisCluster(t).URL()} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := start(t)
			config.URL = testenv.Patient(t, config.URL)
			test(t, config)
		})
	}
}

func clientOf(t *testing.T, config ClientConfig) redis.UniversalClient {
	t.Helper()
	client, err := NewClientFrom(config)
	must(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

// Publishers, watchers and lists do all their work on every kind of deployment.
func TestBackends(t *testing.T) {
	onBackends(t, func(t *testing.T, config ClientConfig) {
		ctx := t.Context()
		seen := newRecorder()
		watcher := testWatcher(t, clientOf(t, config), seen)
		watcher.cfg.Timeout = patience
		testenv.Running(t, watcher.Run)
		publishers := make(map[string]*Publisher)
		for _, owner := range []string{"kafka-0", "kafka-1"} {
			p := testPublisher(t, clientOf(t, config), func(c *PublisherConfig) { c.Owner = owner })
			testenv.Running(t, p.Run)
			publishers[owner] = p
		}
		one, two := publishers["kafka-0"], publishers["kafka-1"]
		one.Publish(hots(hot(text(1), 100, 50), hot(text(2), 200, 50)))
		two.Publish(hots(hot(text(3), 300, 50)))
		seen.await(t, "two owners' keys", has(text(1), text(2), text(3)))
		one.Publish(cools(hot(text(1), 1, 50)))
		seen.await(t, "a key cools", has(text(2), text(3)))
		one.Suspects(0, []published.Hot{hot(text(4), 90, 50)})
		two.Suspects(0, []published.Hot{hot(text(5), 80, 50)})
		two.Instances([]published.Instance{{Name: "api-1", Heard: time.Now()}, {Name: "api-2", Heard: time.Now()}})
		seen.awaitFleet(t, "two owners' suspects", 2, text(4), text(5))

		client := clientOf(t, config)
		listed, err := List(ctx, client, testNamespace)
		must(t, err)
		if len(listed) != 2 || listed[0].Text != text(3) || listed[0].Owner != "kafka-1" || listed[1].Text != text(2) {
			t.Errorf("listed: %+v", listed)
		}
		if suspects, err := ListSuspects(ctx, client, testNamespace); err != nil || len(suspects) != 2 {
			t.Errorf("suspects: %v, %v", suspects, err)
		}
		if instances, err := ListInstances(ctx, client, testNamespace); err != nil || len(instances) != 2 {
			t.Errorf("instances: %v, %v", instances, err)
		}

		// Another process adopts the first part, which runs all its scripts.
		heir := testPublisher(t, clientOf(t, config), func(c *PublisherConfig) { c.Owner = "kafka-0" })
		adopted, _, err := heir.Adopt(ctx)
		must(t, err)
		if len(adopted) != 1 || adopted[0].Text != text(2) {
			t.Errorf("adopted: %+v", adopted)
		}
		var many published.Change
		want := []string{text(2), text(3)}
		for i := range 400 { // too many for a push: they are read from the stream
			many.Hot = append(many.Hot, hot(text(100+i), 100, 50))
			want = append(want, text(100+i))
		}
		heir.Publish(many)
		must(t, heir.settle(ctx))
		must(t, heir.renew(ctx))
		must(t, heir.writeSuspects(ctx))
		must(t, heir.prune(ctx))
		must(t, heir.trim(ctx))
		heir.rewrite = true
		must(t, heir.settle(ctx))
		seen.await(t, "what the heir publishes", has(want...))
		one.Publish(cools(hot(text(2), 1, 50)))
		testenv.Eventually(t, "the former holder is fenced", func() bool { return one.Stats().FencedBy != "" }, func() any { return one.Stats() })
		if s := heir.Stats(); s.Failures != 0 || s.FencedBy != "" || s.Keys != 401 {
			t.Errorf("heir: %+v", s)
		}
		if s := watcher.Stats(); s.Pushes == 0 || s.Errors != 0 || s.Malformed != 0 || !s.Connected {
			t.Errorf("watcher: %+v", s)
		}
	})
}

// failover is a Redis whose primary can fail.
type failover struct {
	config  ClientConfig
	primary *testenv.RedisServer // the first one
	fail    func()               // returns once the successor accepts writes
	after   func()               // brings the former primary back; nil if it stays down
}

// awaitReplica waits until the primary's replica has all writes made so far.
func awaitReplica(t *testing.T, primary *testenv.RedisServer) {
	t.Helper()
	conn := testClient(t, primary.URL()).(*redis.Client).Conn() // WAIT covers the writes of its own connection only
	defer conn.Close()
	must(t, conn.Set(t.Context(), testLayout.Schema, "1", 0).Err())
	if n, err := conn.Do(t.Context(), "WAIT", 1, (patience / 2).Milliseconds()).Int(); err != nil || n < 1 {
		t.Fatalf("%d replicas have what was written, %v", n, err)
	}
}

// awaitInRedis waits until the published set equals want.
func awaitInRedis(t *testing.T, client redis.UniversalClient, want map[string]int64) {
	t.Helper()
	for from := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		got, err := readInRedis(t.Context(), client)
		switch {
		case err == nil && maps.Equal(got, want):
			return
		case time.Since(from) > patience:
			t.Fatalf("published: %v, %v, want %v", got, err, want)
		}
	}
}

// outlasting makes entries and heartbeats outlast any failover. If the first election elects no
// sentinel, the next one comes ten seconds later.
func outlasting(c *PublisherConfig) {
	c.Timeout, c.BeatTTL, c.EntryTTL = 0, time.Minute, time.Minute
}

// The primary fails while the set changes. The set is right again soon after the successor takes
// writes, and no key cools in between.
func TestFailover(t *testing.T) {
	for name, start := range map[string]func(*testing.T) failover{
		"sentinel, killed": func(t *testing.T) failover {
			set := testenv.RedisSentinel(t)
			return failover{
				config:  ClientConfig{URL: set.URL()},
				primary: set.PrimaryServer(),
				fail: func() {
					former := set.Primary()
					set.KillPrimary()
					set.AwaitFailover(former)
				},
				after: set.RestartOld,
			}
		},
		"sentinel, paused": func(t *testing.T) failover {
			set := testenv.RedisSentinel(t)
			former := set.PrimaryServer()
			return failover{
				config:  ClientConfig{URL: set.URL()},
				primary: former,
				fail: func() {
					former.Pause()
					set.AwaitFailover(former.Addr())
				},
				after: former.Resume,
			}
		},
		"cluster, killed": func(t *testing.T) failover {
			set := testenv.RedisCluster(t)
			former := set.Master(testLayout.Hot)
			return failover{
				config:  ClientConfig{URL: set.URL()},
				primary: former,
				fail: func() {
					former.Kill()
					set.AwaitFailover(testLayout.Hot, former)
				},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testFailover(t, start(t))
		})
	}
}

func testFailover(t *testing.T, redis failover) {
	owners := []string{"kafka-0", "kafka-1"}
	var publishers []*Publisher
	for _, owner := range owners {
		p := testPublisher(t, clientOf(t, redis.config), func(c *PublisherConfig) { outlasting(c); c.Owner = owner })
		testenv.Running(t, p.Run)
		publishers = append(publishers, p)
	}
	var seen []*recorder
	var watchers []*Watcher
	for range 2 {
		r := newRecorder()
		w := testWatcher(t, clientOf(t, redis.config), r)
		testenv.Running(t, w.Run)
		seen, watchers = append(seen, r), append(watchers, w)
	}
	want := make(map[string]int64)
	publish := func(owner int, h published.Hot) {
		publishers[owner].Publish(hots(h))
		want[h.Text] = h.Limit.N
	}
	await := func(what string) {
		t.Helper()
		for _, r := range seen {
			r.await(t, what, func(hot map[string]published.Hot) bool { return maps.Equal(limits(hot), want) })
		}
	}
	publish(0, hot("stays", 100, 50))
	await("a first key")
	awaitReplica(t, redis.primary)

	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
			owner := rand.IntN(2)
			h := hot(text(2*rand.IntN(20)+owner), 100, 1+rand.Int64N(1000)) // owners share no key
			if rand.IntN(3) == 0 {
				publishers[owner].Publish(cools(h))
				delete(want, h.Text)
			} else {
				publish(owner, h)
			}
		}
	}()
	time.Sleep(300 * time.Millisecond) // changes are being written
	redis.fail()
	from := time.Now()
	close(stop)
	<-stopped
	publish(0, hot("last of 0", 100, 50)) // entries seen now were written after the failure
	publish(1, hot("last of 1", 100, 50))
	await("convergence")
	t.Logf("%d keys are right again %v after the new primary took writes", len(want), time.Since(from).Round(time.Millisecond))
	client := clientOf(t, ClientConfig{URL: testenv.Patient(t, redis.config.URL)})
	awaitInRedis(t, client, want)

	from = time.Now()
	before := make([]uint64, len(watchers))
	for i, w := range watchers {
		before[i] = w.Stats().Pushes
	}
	for i := range watchers {
		for n := 0; watchers[i].Stats().Pushes == before[i]; n++ {
			if time.Since(from) > patience {
				t.Fatalf("no push came to watcher %d: %+v", i, watchers[i].Stats())
			}
			publish(0, hot("pushed", 100, int64(n%100+1)))
			time.Sleep(50 * time.Millisecond)
		}
	}
	t.Logf("pushes are back after %v", time.Since(from).Round(time.Millisecond))
	if redis.after != nil {
		redis.after()
		for n := range 20 { // the former primary learns its new role
			publish(n%2, hot(text(1000+n), 100, 50))
			time.Sleep(100 * time.Millisecond)
		}
	}
	await("the end")
	awaitInRedis(t, client, want) // even if it fails over once more
	for _, r := range seen {
		if r.cooled["stays"] {
			t.Error("a key cooled that never ought to")
		}
	}
	for i, p := range publishers {
		if s := p.Stats(); s.FencedBy != "" || s.Failures == 0 {
			t.Errorf("publisher %d: %+v", i, s)
		}
	}
}

// The replica that becomes the primary lacks the last changes. Keys that were hot return, and keys
// that had cooled disappear again, under a new run id.
func TestFailoverLosesWrites(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	set := testenv.RedisSentinel(t)
	config := ClientConfig{URL: set.URL()}
	client := clientOf(t, ClientConfig{URL: testenv.Patient(t, config.URL)})
	p := testPublisher(t, clientOf(t, config), outlasting)
	testenv.Running(t, p.Run)
	seen := newRecorder()
	testenv.Running(t, testWatcher(t, clientOf(t, config), seen).Run)
	p.Publish(hots(hot(text(1), 100, 50), hot("stays", 100, 50)))
	seen.await(t, "the first change", has(text(1), "stays"))
	first := parseVersion(t, client)

	former, replica := set.PrimaryServer(), set.Replica()
	awaitReplica(t, former)
	replica.Pause()
	must(t, testClient(t, former.URL()).ClientKillByFilter(t.Context(), "TYPE", "replica").Err())
	p.Publish(cools(hot(text(1), 1, 50)))
	p.Publish(hots(hot(text(2), 100, 50)))
	seen.await(t, "changes that will be lost", has(text(2), "stays"))
	rewrites := p.Stats().Rewrites
	set.KillPrimary()
	replica.Resume()
	if set.AwaitFailover(former.Addr()) != replica.Addr() {
		t.Fatal("the replica is not the primary")
	}
	from := time.Now()
	testenv.Eventually(t, "the loss is noticed", func() bool { return p.Stats().Rewrites != rewrites }, func() any { return p.Stats() })
	t.Logf("rewritten %v after the new primary took writes", time.Since(from).Round(time.Millisecond))
	seen.await(t, "the set as it ought to be", has(text(2), "stays"))
	awaitInRedis(t, client, map[string]int64{text(2): 50, "stays": 50})
	if again := parseVersion(t, client); again.Run == first.Run {
		t.Errorf("version %v after %v: want another run id", again, first)
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if seen.cooled[text(2)] || seen.cooled["stays"] {
		t.Errorf("cooled by mistake: %v", seen.cooled)
	}
}
