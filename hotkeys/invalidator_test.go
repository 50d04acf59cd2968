package hotkeys

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
)

// answerRecorder is a cache that counts its invalidations.
type answerRecorder struct {
	mu      sync.Mutex
	targets map[uint64]int
	tags    map[uint64]int
	flushes int
}

func newAnswerRecorder() *answerRecorder {
	return &answerRecorder{targets: make(map[uint64]int), tags: make(map[uint64]int)}
}

func (r *answerRecorder) InvalidateTarget(id uint64) { r.change(func() { r.targets[id]++ }) }
func (r *answerRecorder) InvalidateTag(id uint64)    { r.change(func() { r.tags[id]++ }) }
func (r *answerRecorder) Flush()                     { r.change(func() { r.flushes++ }) }

func (r *answerRecorder) change(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// count returns the number of invalidations of a target and a tag with the same identifier, and of all.
func (r *answerRecorder) count(id uint64) (target, tag, flushes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.targets[id], r.tags[id], r.flushes
}

// reached reports whether an invalidation of a target has reached the cache, by itself or with all
// since there were this many of those.
func (r *answerRecorder) reached(id uint64, flushes int) bool {
	target, _, now := r.count(id)
	return target > 0 || now > flushes
}

func (r *answerRecorder) flushed() int {
	_, _, n := r.count(0)
	return n
}

func newTestInvalidator(t *testing.T, client redis.UniversalClient, cfg WatcherConfig) (*Invalidator, *answerRecorder) {
	t.Helper()
	cfg.Namespace = testNamespace
	cache := newAnswerRecorder()
	v, err := NewInvalidator(client, cfg, cache)
	must(t, err)
	return v, cache
}

// startInvalidator runs an invalidator until the test ends, and returns it when it follows.
func startInvalidator(t *testing.T, client redis.UniversalClient, cfg WatcherConfig) (*Invalidator, *answerRecorder) {
	t.Helper()
	v, cache := newTestInvalidator(t, client, cfg)
	t.Cleanup(testenv.Running(t, v.Run))
	within(t, "a first read", patience, func() bool { s := v.Stats(); return s.Connected && s.Flushes > 0 })
	return v, cache
}

// readNow polls once without Run.
func readNow(t *testing.T, v *Invalidator) {
	t.Helper()
	v.cfg.Timeout, v.poller.timeout = patience, patience
	v.poll(t.Context(), false)
	if s := v.Stats(); !s.Answered {
		t.Fatalf("%+v", s)
	}
}

func sendNow(t *testing.T, v *Invalidator) {
	t.Helper()
	sent := v.Stats().Sent
	v.sendPending(t.Context())
	if now := v.Stats().Sent; now != sent+1 {
		t.Fatalf("%d entries sent", now-sent)
	}
}

// Invalidations reach the own cache at once and once, and those of other instances by a push.
func TestInvalidations(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	client := testClient(t, server.URL())
	cfg := WatcherConfig{Poll: time.Hour, Timeout: patience}
	a, own := startInvalidator(t, client, cfg)
	b, pushed := startInvalidator(t, client, cfg)
	third, other := startInvalidator(t, client, cfg)
	a.Target(1)
	if target, tag, _ := own.count(1); target != 1 || tag != 0 {
		t.Errorf("%d, %d at once", target, tag)
	}
	// The stream begins with this entry, so all caches are emptied.
	within(t, "the first", patience, func() bool { return own.flushed() == 2 && pushed.flushed() == 2 && other.flushed() == 2 })
	within(t, "sent", patience, func() bool { return a.Stats().Waiting == 0 && a.Stats().Sent > 0 })
	b.Target(3)
	b.Tag(3)
	for what, cache := range map[string]*answerRecorder{"own": own, "other": other} {
		within(t, what, patience, func() bool { target, tag, _ := cache.count(3); return target == 1 && tag == 1 })
	}
	must(t, InvalidateTag(t.Context(), client, testNamespace, 4))
	for what, cache := range map[string]*answerRecorder{"own": own, "pushed": pushed, "other": other} {
		within(t, "an operator's, "+what, patience, func() bool { _, tag, _ := cache.count(4); return tag == 1 })
	}
	if target, tag, _ := pushed.count(3); target != 1 || tag != 1 {
		t.Errorf("b's invalidation is applied %d and %d times in its own cache", target, tag)
	}
	_, err := appendInvalidation(t.Context(), client, testLayout, &published.Invalidation{All: true})
	must(t, err)
	within(t, "all", patience, func() bool { return pushed.flushed() == 3 && other.flushed() == 3 })
	if s := third.Stats(); s.Received != 3 || s.Sent != 0 || s.Waiting != 0 || s.Pushes == 0 || s.Errors != 0 {
		t.Errorf("%+v", s)
	}
	for _, entry := range client.XRange(t.Context(), testLayout.Invalidation, "-", "+").Val() {
		if _, err := published.ParseInvalidation(entry.Values); err != nil || len(entry.Values) != 2 {
			t.Errorf("%v: %v", entry.Values, err)
		}
	}
	if ttl := client.PTTL(t.Context(), testLayout.Invalidation).Val(); ttl <= invalidationLife-time.Minute || ttl > invalidationLife {
		t.Errorf("the stream lasts %v", ttl)
	}
}

// Pushes cause at most four reads a second, and none is forgotten.
func TestPushesAreBounded(t *testing.T) {
	t.Parallel()
	client := testClient(t, testenv.Redis(t).URL())
	begun := time.Now()
	v, cache := startInvalidator(t, client, WatcherConfig{Poll: time.Hour, Timeout: patience})
	flushes := cache.flushed()
	for id := range uint64(200) {
		_, err := appendInvalidation(t.Context(), client, testLayout, &published.Invalidation{Sender: "another", Targets: []uint64{id}})
		must(t, err)
	}
	within(t, "the last", patience, func() bool { target, _, _ := cache.count(199); return target == 1 })
	polls, took := v.Stats().Polls, time.Since(begun)
	if most := uint64(hintRate.Burst) + uint64(took/hintRate.Every) + 1; polls > most {
		t.Errorf("%d reads in %v", polls, took)
	}
	if n := cache.flushed() - flushes; n > 1 { // the stream began with these
		t.Errorf("%d flushes", n)
	}
}

// An invalidation that is not pushed is found by the poll.
func TestInvalidationsThatAreNotPushed(t *testing.T) {
	t.Parallel()
	client := testClient(t, testenv.Redis(t).URL())
	v, cache := startInvalidator(t, client, WatcherConfig{})
	flushes := cache.flushed()
	entry := published.Invalidation{Sender: "another", Targets: []uint64{1}}
	must(t, client.XAdd(t.Context(), &redis.XAddArgs{Stream: testLayout.Invalidation, Values: published.EncodeInvalidation(&entry)}).Err())
	took := within(t, "polled", patience, func() bool { return cache.reached(1, flushes) })
	if s := v.Stats(); s.Pushes != 0 {
		t.Errorf("%+v", s)
	}
	t.Logf("found after %v", took)
}

// A reader that cannot know what it has missed empties its cache, and one that can does not.
func TestMissedInvalidations(t *testing.T) {
	t.Parallel()
	client := testClient(t, testenv.Redis(t).URL())
	ctx := t.Context()
	a, _ := newTestInvalidator(t, client, WatcherConfig{})
	send := func(n int) {
		t.Helper()
		for range n {
			a.Target(7)
			sendNow(t, a)
		}
	}
	v, cache := newTestInvalidator(t, client, WatcherConfig{})
	send(1)
	readNow(t, v)
	if cache.flushed() != 1 {
		t.Error("the first read trusts what was cached before")
	}
	trim := func(n int64) { must(t, client.XTrimMaxLen(ctx, testLayout.Invalidation, n).Err()) }
	for _, test := range []struct {
		name    string
		change  func()
		targets int
		flushed bool
	}{
		{"nothing", func() {}, 0, false},
		{"some", func() { send(3) }, 3, false},
		{"as many as one read has", func() { send(maxInvalidationRead) }, maxInvalidationRead, false},
		{"one more", func() { send(maxInvalidationRead + 1) }, 0, true},
		{"trimmed to the last that is known", func() { send(2); trim(3) }, 2, false},
		{"trimmed beyond it", func() { send(2); trim(2) }, 0, true},
		{"emptied", func() { trim(0) }, 0, true},
		{"still empty", func() {}, 0, false},
		{"the first", func() { send(1) }, 0, true},
		{"deleted", func() { must(t, client.Del(ctx, testLayout.Invalidation).Err()) }, 0, true},
		{"another", func() { send(1) }, 0, true},
		{"deleted and written again", func() { must(t, client.Del(ctx, testLayout.Invalidation).Err()); send(1) }, 0, true},
		{"flushed", func() { must(t, client.FlushAll(ctx).Err()); send(2) }, 0, true},
		{"the entry of a later version", func() {
			must(t, client.XAdd(ctx, &redis.XAddArgs{Stream: testLayout.Invalidation, Values: []string{"answers", "host:00"}}).Err())
		}, 0, true},
		{"some after that", func() { send(2) }, 2, false},
	} {
		time.Sleep(2 * time.Millisecond) // an ID is a time in milliseconds; a stream begun within the same one could have the same
		test.change()
		targets, _, flushes := cache.count(7)
		readNow(t, v)
		gotTargets, _, gotFlushes := cache.count(7)
		if gotTargets -= targets; gotTargets != test.targets || gotFlushes-flushes != map[bool]int{true: 1}[test.flushed] {
			t.Errorf("%s: %d targets and %d flushes", test.name, gotTargets, gotFlushes-flushes)
		}
	}
}

// After a failed read and after a new subscription, Redis may be another that lacks what the former
// had acknowledged. The cache is emptied once.
func TestInvalidationsAfterAnOutage(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	client := testClient(t, server.URL())
	a, _ := newTestInvalidator(t, client, WatcherConfig{})
	a.Target(1)
	sendNow(t, a)
	v, cache := newTestInvalidator(t, client, WatcherConfig{})
	readNow(t, v)
	expect := func(what string, want int) {
		t.Helper()
		flushes := cache.flushed()
		readNow(t, v)
		if got := cache.flushed() - flushes; got != want {
			t.Errorf("%s: %d flushes", what, got)
		}
	}
	expect("nothing", 0)
	v.poller.timeout = 1
	v.poll(t.Context(), false)
	if s := v.Stats(); s.Answered || s.Errors != 1 {
		t.Errorf("%+v", s)
	}
	expect("a failed read", 1)
	expect("nothing since", 0)
	v.poller.subscription.heard.Change(func(r *received) { r.subscriptions++ })
	expect("a new subscription", 1)
	expect("nothing since that", 0)
}

// A flush takes an entry away that was not read, from a stream that was empty before. The cache is
// emptied once.
func TestInvalidationsThatRedisLoses(t *testing.T) {
	t.Parallel()
	client := testClient(t, testenv.Redis(t).URL())
	p := testPublisher(t, client, nil)
	must(t, p.renew(t.Context()))
	p.Publish(hots(hot(text(1), 100, 50)))
	must(t, p.settle(t.Context()))
	a, _ := newTestInvalidator(t, client, WatcherConfig{})
	v, cache := newTestInvalidator(t, client, WatcherConfig{})
	readNow(t, v)
	readNow(t, v)
	flushes := cache.flushed()
	a.Target(1)
	sendNow(t, a)
	must(t, client.FlushAll(t.Context()).Err())
	must(t, p.renew(t.Context())) // which writes the set again
	readNow(t, v)
	readNow(t, v)
	if n := cache.flushed() - flushes; n != 1 {
		t.Errorf("%d flushes, want 1", n)
	}
}

// Invalidations wait while Redis is unavailable. Other instances receive them when it is back, even
// with another stream.
func TestInvalidationsDuringAnOutage(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	client := testClient(t, server.URL())
	var log testenv.LogBuffer
	a, own := startInvalidator(t, client, WatcherConfig{Poll: 50 * time.Millisecond, Logger: loggerTo(&log)})
	_, other := startInvalidator(t, client, WatcherConfig{Poll: 50 * time.Millisecond})
	a.Target(1)
	within(t, "before", patience, func() bool { return other.reached(1, other.flushed()) || other.flushed() > 1 })
	server.Kill()
	failures := a.Stats().Errors
	begun := time.Now()
	a.Target(2)
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("an invalidation waits for Redis: %v", took)
	}
	if target, _, _ := own.count(2); target != 1 {
		t.Error("the own cache has to wait for Redis")
	}
	within(t, "an outage", patience, func() bool { return a.Stats().Errors > failures+3 })
	if a.Stats().Waiting != 1 {
		t.Errorf("%+v", a.Stats())
	}
	flushes := other.flushed()
	server.Restart()
	within(t, "after", patience, func() bool { return other.reached(2, flushes) })
	within(t, "sent", patience, func() bool { return a.Stats().Waiting == 0 })
	sent := client.XRange(t.Context(), testLayout.Invalidation, "-", "+").Val()
	if len(sent) == 0 || sent[0].Values["answers"] != fmt.Sprintf("target:%016x", 2) {
		t.Errorf("%v", sent)
	}
	within(t, "log lines", patience, func() bool {
		return strings.Count(log.String(), "cannot send invalidations") == 1 && strings.Count(log.String(), "sending invalidations of cached answers again") == 1
	})
}

// Too many that wait become one of all.
func TestManyInvalidations(t *testing.T) {
	t.Parallel()
	client := testClient(t, testenv.Redis(t).URL())
	v, cache := newTestInvalidator(t, client, WatcherConfig{})
	for id := range uint64(published.MaxInvalidation) {
		v.Target(id)
		v.Target(id)
	}
	if s := v.Stats(); s.Waiting != published.MaxInvalidation || s.Overflows != 0 {
		t.Errorf("%+v", s)
	}
	reader, other := newTestInvalidator(t, client, WatcherConfig{})
	readNow(t, reader)
	sendNow(t, v)
	readNow(t, reader) // the first of the stream
	for id := range uint64(published.MaxInvalidation) {
		v.Tag(id)
	}
	sendNow(t, v)
	readNow(t, reader)
	if _, tag, flushes := other.count(published.MaxInvalidation - 1); tag != 1 || flushes != 2 {
		t.Errorf("%d, %d flushes", tag, flushes)
	}
	for id := range uint64(2 * published.MaxInvalidation) {
		v.Tag(id)
	}
	if s := v.Stats(); s.Waiting != 1 || s.Overflows != 1 || cache.flushed() != 0 {
		t.Errorf("%+v, %d flushes of the own cache", s, cache.flushed())
	}
	sendNow(t, v)
	readNow(t, reader)
	if flushes := other.flushed(); flushes != 3 {
		t.Errorf("%d flushes", flushes)
	}
	// What could not be sent goes with what has come since.
	v.Target(1)
	taken, _ := v.pending.takeAll()
	for id := range uint64(published.MaxInvalidation) {
		v.Target(id + 2)
	}
	v.pending.settle(&taken, false)
	if s := v.Stats(); s.Waiting != 1 || s.Overflows != 2 {
		t.Errorf("%+v", s)
	}
}

// An instance sends at most 20 entries a second, however many invalidations it makes.
func TestInvalidationsAreBounded(t *testing.T) {
	t.Parallel()
	client := testClient(t, testenv.Redis(t).URL())
	begun := time.Now()
	v, _ := startInvalidator(t, client, WatcherConfig{})
	for n := uint64(0); v.Stats().Sent < 5; n++ {
		v.Target(n % 10)
		if time.Since(begun) > patience {
			t.Fatal("never sent")
		}
	}
	sent, took := v.Stats().Sent, time.Since(begun)
	if most := uint64(took/sendEvery) + 1; sent > most {
		t.Errorf("%d entries in %v", sent, took)
	}
}

// What waits when Run ends is still sent.
func TestLastInvalidations(t *testing.T) {
	t.Parallel()
	client := testClient(t, testenv.Redis(t).URL())
	v, _ := newTestInvalidator(t, client, WatcherConfig{Timeout: patience})
	v.Target(1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, v.Run(ctx))
	if n := client.XLen(t.Context(), testLayout.Invalidation).Val(); n != 1 || v.Stats().Waiting != 0 {
		t.Errorf("%d entries, %+v", n, v.Stats())
	}
}

// A foreign value empties the caches, and the next invalidation repairs the key.
func TestForeignInvalidations(t *testing.T) {
	t.Parallel()
	client := testClient(t, testenv.Redis(t).URL())
	ctx := t.Context()
	a, _ := newTestInvalidator(t, client, WatcherConfig{})
	v, cache := newTestInvalidator(t, client, WatcherConfig{})
	a.Target(1)
	sendNow(t, a)
	readNow(t, v)
	must(t, client.Del(ctx, testLayout.Invalidation).Err())
	must(t, client.Set(ctx, testLayout.Invalidation, "x", 0).Err())
	for want := 2; want < 4; want++ {
		readNow(t, v)
		if cache.flushed() != want || v.Stats().Foreign != uint64(want-1) {
			t.Errorf("%d flushes, %+v", cache.flushed(), v.Stats())
		}
	}
	a.Target(2)
	sendNow(t, a)
	readNow(t, v)
	a.Target(3)
	sendNow(t, a)
	readNow(t, v)
	if target, _, flushes := cache.count(3); target != 1 || flushes != 4 {
		t.Errorf("%d, %d flushes", target, flushes)
	}
}

// The primary of a cluster's slot or of a sentinels' set may die when it has just acknowledged an
// invalidation that no replica has. Others still do not use older answers once they reach its
// successor.
func TestInvalidationsOutliveAFailover(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	set := testenv.RedisSentinel(t)
	client := testClient(t, set.URL())
	a, _ := startInvalidator(t, client, WatcherConfig{})
	_, other := startInvalidator(t, testClient(t, set.URL()), WatcherConfig{})
	a.Target(1)
	within(t, "before", patience, func() bool { return other.flushed() > 1 || other.reached(1, other.flushed()) })
	replica, former := set.Replica(), set.Primary()
	replica.AwaitReplica()

	replica.Pause() // so that it does not connect again
	must(t, client.Do(t.Context(), "CLIENT", "KILL", "TYPE", "replica").Err())
	sent, flushes := a.Stats().Sent, other.flushed()
	a.Target(2)
	within(t, "an acknowledgement", patience, func() bool { return a.Stats().Sent > sent })
	set.KillPrimary()
	replica.Resume()
	set.AwaitFailover(former)
	within(t, "a flush", patience, func() bool { return other.flushed() > flushes })
	a.Target(3)
	flushes = other.flushed()
	within(t, "a new one", patience, func() bool { return other.reached(3, flushes) })
}

func TestInvalidationsOfACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	client := testClient(t, testenv.RedisCluster(t).URL())
	a, _ := startInvalidator(t, client, WatcherConfig{})
	_, pushed := startInvalidator(t, client, WatcherConfig{Poll: time.Hour})
	for id := range uint64(3) {
		flushes := pushed.flushed()
		a.Target(id)
		within(t, "pushed", patience, func() bool { return pushed.reached(id, flushes) })
	}
}

func TestNewInvalidatorRefuses(t *testing.T) {
	client := testClient(t, "redis://127.0.0.1:1")
	cache := newAnswerRecorder()
	for what, err := range map[string]error{
		"namespace": refused(client, WatcherConfig{Namespace: "my shop"}, cache),
		"poll":      refused(client, WatcherConfig{Namespace: "shop", Poll: -1}, cache),
		"timeout":   refused(client, WatcherConfig{Namespace: "shop", Timeout: -1}, cache),
		"client":    refused(nil, WatcherConfig{Namespace: "shop"}, cache),
		"cache":     refused(client, WatcherConfig{Namespace: "shop"}, nil),
		"operator":  InvalidateTag(t.Context(), client, "my shop", 1),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

func refused(client redis.UniversalClient, cfg WatcherConfig, cache AnswerCache) error {
	_, err := NewInvalidator(client, cfg, cache)
	return err
}
