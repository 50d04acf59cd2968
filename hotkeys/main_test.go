package hotkeys

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotset"
	"github.com/hotparam/hotparam/internal/hotkeytest"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

const testNamespace = "shop"

var testLayout = published.NewLayout(testNamespace)

// patience is how long a test waits for an event that should be soon.
const patience = 20 * time.Second

// onBoth runs a test against a real Redis and against miniredis. The scripts must behave the same
// in both Lua implementations.
func onBoth(t *testing.T, test func(t *testing.T, client redis.UniversalClient)) {
	t.Run("redis", func(t *testing.T) {
		test(t, testClient(t, testenv.Redis(t).URL()))
	})
	t.Run("miniredis", func(t *testing.T) {
		m := miniredis.RunT(t)
		m.ClockTTL(true)
		test(t, testClient(t, "redis://"+m.Addr()))
	})
}

func testClient(tb testing.TB, url string) redis.UniversalClient {
	tb.Helper()
	client, err := NewClient(testenv.Patient(tb, url))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { client.Close() })
	return client
}

// testPublisher returns a publisher with a long timeout, since miniredis is slow under the race
// detector. Tests in which Redis freezes use the default timeout instead.
func testPublisher(tb testing.TB, client redis.UniversalClient, edit func(*PublisherConfig)) *Publisher {
	tb.Helper()
	cfg := PublisherConfig{Namespace: testNamespace, Timeout: patience}
	if edit != nil {
		edit(&cfg)
	}
	p, err := NewPublisher(client, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func testWatcher(tb testing.TB, client redis.UniversalClient, target hotset.Writer) *Watcher {
	tb.Helper()
	w, err := NewWatcher(client, WatcherConfig{Namespace: testNamespace}, target)
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

// must fails the test when a step of a publisher or watcher failed.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

var hot, hots, cools, text = hotkeytest.Hot, hotkeytest.Hots, hotkeytest.Cools, hotkeytest.Text

// recorder is a target that remembers the hot keys and lets a test wait for them.
type recorder struct {
	mu      sync.Mutex
	version string
	hot     map[string]published.Hot // the hot keys by text
	fleet   published.Fleet
	fleets  int // the number of fleet updates
	swaps   int
	cooled  map[string]bool // texts that were hot and then not
	changed chan struct{}   // closed at the next swap
}

func newRecorder() *recorder {
	return &recorder{hot: make(map[string]published.Hot), cooled: make(map[string]bool), changed: make(chan struct{})}
}

func (r *recorder) Update(version string, change published.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version = version
	for _, h := range change.Hot {
		r.hot[h.Text] = h
	}
	for _, h := range change.Cool {
		delete(r.hot, h.Text)
		r.cooled[h.Text] = true
	}
	r.swaps++
	r.tell()
}

func (r *recorder) UpdateFleet(f published.Fleet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fleet = f
	r.fleets++
	r.tell()
}

func (r *recorder) swapped() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.swaps
}

func (r *recorder) tell() {
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *recorder) now() map[string]published.Hot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.hot)
}

// limits returns the limits of the hot keys, by text.
func (r *recorder) limits() map[string]int64 { return limits(r.now()) }

func limits(hot map[string]published.Hot) map[string]int64 {
	got := make(map[string]int64, len(hot))
	for text, h := range hot {
		got[text] = h.Limit.N
	}
	return got
}

// await waits until the hot keys satisfy want.
func (r *recorder) await(tb testing.TB, what string, want func(map[string]published.Hot) bool) {
	tb.Helper()
	r.until(tb, what, func() bool { return want(r.hot) })
}

// awaitFleet waits until this number of instances and these suspects are known.
func (r *recorder) awaitFleet(tb testing.TB, what string, instances int, suspects ...string) {
	tb.Helper()
	r.until(tb, what, func() bool { return r.fleet.Instances == instances && slices.Equal(texts(r.fleet), suspects) })
}

// texts returns the texts of the suspects, in their order.
func texts(f published.Fleet) []string {
	var texts []string
	for _, key := range f.Suspects {
		texts = append(texts, key.Text)
	}
	return texts
}

func (r *recorder) until(tb testing.TB, what string, want func() bool) {
	tb.Helper()
	deadline := time.After(patience)
	for {
		r.mu.Lock()
		ok, changed, got, fleet := want(), r.changed, len(r.hot), r.fleet
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			tb.Fatalf("never came: %s; %d keys are hot, %d instances, suspects %q", what, got, fleet.Instances, texts(fleet))
		}
	}
}

func has(texts ...string) func(map[string]published.Hot) bool {
	return func(hot map[string]published.Hot) bool {
		for _, text := range texts {
			if _, ok := hot[text]; !ok {
				return false
			}
		}
		return len(hot) == len(texts)
	}
}

// inRedis returns the limits of the published keys, by text.
func inRedis(tb testing.TB, client redis.UniversalClient) map[string]int64 {
	tb.Helper()
	got, err := readInRedis(context.Background(), client)
	must(tb, err)
	return got
}

// readInRedis is like inRedis but returns errors. It checks that the sorted set and the hash agree.
func readInRedis(ctx context.Context, client redis.UniversalClient) (map[string]int64, error) {
	set, err := readWholeSet(ctx, client, testLayout)
	if err != nil {
		return nil, err
	}
	n, err := client.HLen(ctx, testLayout.Info).Result()
	if err != nil {
		return nil, err
	}
	if int(n) != len(set.hot) || len(set.unreadable) > 0 {
		return nil, fmt.Errorf("hot has %d readable members, info has %d; unreadable: %q", len(set.hot), n, set.unreadable)
	}
	got := make(map[string]int64)
	for _, h := range set.hot {
		got[h.Text] = h.Limit.N
	}
	return got, nil
}

func version(tb testing.TB, client redis.UniversalClient) string {
	tb.Helper()
	v, err := client.Get(context.Background(), testLayout.Version).Result()
	must(tb, err)
	return v
}

// pruneStrange prunes as if the unreadable entries had been unreadable for long.
func pruneStrange(tb testing.TB, p *Publisher) {
	tb.Helper()
	must(tb, p.prune(context.Background()))
	for member := range p.strange {
		p.strange[member] = time.Time{}
	}
	must(tb, p.prune(context.Background()))
}

func loggerTo(log *testenv.LogBuffer) *slog.Logger { return slog.New(slog.NewTextHandler(log, nil)) }
