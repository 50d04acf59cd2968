package page

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/cmd/internal/live"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// fixture is a page over a real Redis that a real publisher fills.
type fixture struct {
	redis     *testenv.RedisServer
	client    redis.UniversalClient
	publisher *hotkeys.Publisher
	view      *live.View
	page      *Page
	past      http.Handler // of the history; nil if none is kept
	server    *httptest.Server
	actor     *fakeActor // nil for a page that only reads
}

// newFixture starts a page, its Redis and its publisher. They end with the test.
func newFixture(t *testing.T, every time.Duration, token string) *fixture {
	t.Helper()
	f := &fixture{redis: testenv.Redis(t)}
	var err error
	if f.client, err = hotkeys.NewClient(f.redis.URL()); err != nil {
		t.Fatal(err)
	}
	if f.publisher, err = hotkeys.NewPublisher(f.client, hotkeys.PublisherConfig{Namespace: "shop"}); err != nil {
		t.Fatal(err)
	}
	if f.view, err = live.NewView(f.client, live.Config{Namespace: "shop", Every: every}); err != nil {
		t.Fatal(err)
	}
	f.serve(t, f.view, token, f.publisher.Run, f.view.Run)
	return f
}

// serve serves a view, and runs its functions until the test ends.
func (f *fixture) serve(t *testing.T, view LiveView, token string, runs ...func(context.Context) error) {
	t.Helper()
	f.server = httptest.NewUnstartedServer(nil)
	guard := GuardConfig{Token: token, Listener: f.server.Listener.Addr()}
	conf := Config{View: view, Redis: "redis://redis.example:6379/0", Version: "v1.2.3", Rules: testRules}
	if f.actor != nil {
		guard.Tokens, conf.Actor = people, f.actor
	}
	conf.Guard = NewGuard(guard)
	f.page = New(conf)
	mux := http.NewServeMux()
	f.page.Register(mux)
	if f.past != nil {
		mux.Handle("GET /api/v1/history", f.past)
	}
	f.server.Config.Handler = mux
	f.server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(16 << 10) // so that a reader can be slow within a test's time
		return ctx
	}
	f.server.Start()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range append(runs, f.page.Run) {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
		f.server.Close()
		if f.client != nil {
			_ = f.client.Close()
		}
	})
}

// beat makes a member send heartbeats until the test ends.
func (f *fixture) beat(t *testing.T, m published.Member) {
	t.Helper()
	h, err := hotkeys.NewHeartbeat(f.client, hotkeys.HeartbeatConfig{Namespace: "shop", Every: 20 * time.Millisecond, Member: func() published.Member { return m }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- h.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// fakeView is a view that shows the state that a test sets.
type fakeView struct {
	*live.View // not running, so it has no events

	mu       sync.Mutex
	snapshot *live.Snapshot
	changed  chan struct{}
	events   []live.Event // the newest first
}

// manyEvents returns events of n keys of one rule that became hot in the same second, and one of
// another rule that cooled before.
func manyEvents(n int) (events []live.Event) {
	now := time.Now()
	for i := range n {
		events = append(events, live.Event{ID: fmt.Sprint(1000-i, "-0"), At: now, Type: live.Hot, Namespace: "shop", Rule: "search-terms", Key: fmt.Sprintf("GET /search?q=value-%04d", i), Why: "212 in 1s", By: "agg-1"})
	}
	return append(events, live.Event{ID: "1-0", At: now.Add(-time.Minute), Type: live.Cool, Namespace: "shop", Rule: "tenants", Key: "* header:X-Tenant=acme", By: "agg-1"})
}

func (v *fakeView) Recent(int) []live.Event { return v.events }

func newFakeView(t *testing.T) *fakeView {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { _ = client.Close() })
	view, err := live.NewView(client, live.Config{Namespace: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	return &fakeView{View: view, snapshot: &live.Snapshot{Namespace: "shop"}, changed: make(chan struct{})}
}

func (v *fakeView) show(s *live.Snapshot) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s.Namespace, s.Seq, s.Read, s.Clock = "shop", v.snapshot.Seq+1, time.Now(), time.Now()
	v.snapshot = s
	close(v.changed)
	v.changed = make(chan struct{})
}

func (v *fakeView) Snapshot() *live.Snapshot {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.snapshot
}

func (v *fakeView) Changed() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changed
}

func serveView(t *testing.T, view LiveView, token string) *fixture {
	t.Helper()
	f := &fixture{}
	f.serve(t, view, token)
	return f
}

// manyKeys returns a snapshot of hot keys whose counts change with each step.
func manyKeys(n, step int) *live.Snapshot {
	s := &live.Snapshot{Published: true}
	for i := range n {
		h := search(fmt.Sprintf("value-%04d", i), 300+float64(i)+100*math.Sin(float64(step)/8+float64(i)))
		h.Since = time.Unix(1_700_000_000, 0)
		s.Hot = append(s.Hot, live.HotKey{Hot: h})
	}
	return s
}

func testRules() RuleList {
	return RuleList{Namespace: "shop", Version: "8c1f0a2be77d4c11", Rules: []RuleText{
		{"search-terms", "search-terms: GET /search by q: hot at 200/s (cool below 160); limit 50/s, burst 100"},
		{"downloads", "downloads: GET /files/{id} by path:id: hot at 10MB/10s (cool below 8MB); limit 1MB/s, burst 2MB, shadow"},
		{"tenants", "tenants: * by header:X-Tenant: hot at 20% of the route and 100/s (cool below 80% of that); listed only"},
	}}
}

// search returns a hot key of a rule with a limit.
func search(value string, rate float64) published.Hot {
	return published.Hot{
		Key: rules.Key{Rule: "search-terms", Text: "GET /search?q=" + value},
		Low: int64(rate), High: int64(rate * 1.08), Rate: rate, Ratio: rate / 200, Since: time.Now().Add(-90 * time.Second),
		Cause: published.Cause{Kind: rules.FixedRate, Rate: rules.Rate{N: 200, Per: time.Second}},
		Limit: rules.Rate{N: 50, Per: time.Second}, Burst: 100, Mode: rules.ModeLimit,
		Top: &published.Attribution{
			Routes:    []published.Origin{{Name: "GET /search", Count: int64(rate)}},
			Instances: []published.Origin{{Name: "api-1", Count: int64(rate / 2)}, {Name: "api-2", Count: int64(rate / 2), Over: 4}},
			Callers:   []published.Origin{{Name: "203.0.113.7", Count: int64(rate * 0.9)}},
		},
	}
}

// publish makes keys hot and waits until the page shows them.
func (f *fixture) publish(t *testing.T, hot ...published.Hot) {
	t.Helper()
	f.publisher.Publish(published.Change{Hot: hot})
	f.publisher.Refresh(0, hot)
	eventually(t, func() error {
		if got := len(f.view.Snapshot().Hot); got < len(hot) {
			return fmt.Errorf("%d keys are hot, want %d", got, len(hot))
		}
		return nil
	})
}

func eventually(t *testing.T, check func() error) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
