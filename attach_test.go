package hotparam

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// While none of the servers in the file is available, requests are served and the log says so
// once. Hot keys that are published later are limited.
func TestRedisComesLater(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	server.Kill()
	begin := time.Now()
	f := open(t, shop(server.URL(), nowhere(t), searchRule))
	if n := f.passes(10, "/search?q=phone"); n != 10 {
		t.Errorf("%d of 10 requests passed while Redis is away", n)
	}
	if d := time.Since(begin); d > 5*time.Second {
		t.Errorf("Open and 10 requests took %v", d)
	}
	const away = "cannot follow the hot set"
	f.awaitLog(away)
	f.await("three failures", func() bool { return f.Stats().Watcher.Errors >= 3 })
	if n := f.logged(away); n != 1 {
		t.Errorf("the outage was logged %d times:\n%s", n, f.log)
	}
	server.Restart()
	f.awaitLog("following the hot set again")
	publish(t, server.URL(), "shop", nil, "GET /search?q=phone")
	f.await("a hot key", func() bool { return len(f.HotKeys()) == 1 })
	passed := 0 // a request that Redis answers too late is refused
	f.await("the burst of 2", func() bool {
		passed += f.passes(1, "/search?q=phone")
		return passed == 2
	})
	if n := f.passes(10, "/search?q=phone"); n != 0 {
		t.Errorf("%d of 10 requests passed beyond the burst of a hot key", n)
	}
	if n := f.passes(10, "/search?q=other"); n != 10 {
		t.Errorf("%d of 10 requests passed for a key that is not hot", n)
	}
}

// Begin and Enter decide as the handler does.
func TestBeginAndEnter(t *testing.T) {
	f := open(t, shop("redis://"+nowhere(t), nowhere(t), fmt.Sprintf(productRule, 2), `{id: jobs, match: {route: "resize"}, by: [size], limit: {rate: 1/1h, burst: 1}}`))
	for i := range 3 {
		d, ticket := f.Begin(middleware.Request{Context: t.Context(), Method: http.MethodGet, Path: "/products", Pattern: "GET /products"})
		if ticket != nil {
			ticket.End(middleware.Cost{})
		}
		if d.Allowed != (i < 2) {
			t.Errorf("request %d: %+v, want 2 to pass", i, d)
		}
	}
	for i := range 2 {
		if d := f.Enter(t.Context(), "resize", rules.Param{Name: "size", Value: "xl"}); d.Allowed != (i == 0) {
			t.Errorf("job %d: %+v, want 1 to pass", i, d)
		}
	}
	if s := f.Stats().Guard; s.Limited != 2 || f.Guard().Stats() != s {
		t.Errorf("%+v, want 2 limited", s)
	}
}

func TestShadowCallerAndRoute(t *testing.T) {
	var caller, route atomic.Int64
	f := open(t, shop("redis://"+nowhere(t), nowhere(t), fmt.Sprintf(productRule, 2)),
		WithShadow(),
		WithCaller(func(*http.Request) string { caller.Add(1); return "me" }), // whom hooks see
		WithMiddleware(middleware.WithHooks(middleware.Hooks{After: func(middleware.Request, rules.Decision) {}})),
		WithRoute(func(*http.Request) string { route.Add(1); return "GET /products" }))
	if n := f.passes(5, "/search"); n != 5 || f.Stats().Guard.Shadowed != 3 {
		t.Errorf("%d of 5 passed and %d would have been refused, want 5 and 3", n, f.Stats().Guard.Shadowed)
	}
	if caller.Load() != 5 || route.Load() != 5 {
		t.Errorf("caller was asked %d times and route %d times, want 5", caller.Load(), route.Load())
	}
}

// Close sends the last counts, under the given name.
func TestCloseFlushes(t *testing.T) {
	r := receive(t)
	f := open(t, shop("redis://"+nowhere(t), r.addr(), searchRule), WithName("api-7"))
	f.passes(3, "/search?q=boat")
	if err := f.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.await("the counts", func() bool { return strings.Contains(r.log.String(), "q=boat:3|c") })
	if !strings.Contains(r.log.String(), "api-7") {
		t.Errorf("the sender's name is not in %q", r.log.String())
	}
}

// Close may be called several times and concurrently, while requests are served.
func TestCloseIsConcurrent(t *testing.T) {
	server := testenv.Redis(t)
	f := open(t, shop(server.URL(), receive(t).addr(), searchRule,
		`{id: exact, match: {route: "GET /products"}, limit: {rate: 1000000/s, scope: exact}}`))
	ctx, stop := context.WithCancel(t.Context())
	var requests sync.WaitGroup
	var passed atomic.Int64
	for i := range 4 {
		requests.Go(func() {
			for ctx.Err() == nil {
				if f.get([]string{"/search?q=a", "/products"}[i%2]) == http.StatusOK {
					passed.Add(1)
				}
			}
		})
	}
	f.await("requests", func() bool { return passed.Load() > 100 })
	var closing sync.WaitGroup
	for range 3 {
		closing.Go(func() {
			if err := f.Close(context.Background()); err != nil {
				t.Errorf("Close: %v", err)
			}
			select {
			case <-f.finished:
			default:
				t.Error("Close returned before the end")
			}
		})
	}
	closing.Wait()
	before := passed.Load()
	f.await("requests after Close", func() bool { return passed.Load() > before+100 })
	stop()
	requests.Wait()
	if err := f.Reload(); !errors.Is(err, ErrClosed) {
		t.Errorf("Reload after Close: %v", err)
	}
	if n := f.Stats().Guard.Panics; n != 0 {
		t.Errorf("%d panics", n)
	}
}

const slowRule = `{id: slow, match: {route: "GET /slow"}, limit: {concurrency: 1, scope: exact}}`

// holdPermit starts a request that holds a permit in Redis until release is called. On a busy
// machine Redis may not answer in time. Then the request is decided without it, and another one is
// made.
func holdPermit(f *fixture) (release func()) {
	f.t.Helper()
	for end := time.Now().Add(longest); time.Now().Before(end); {
		entered, leave, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
		mux := http.NewServeMux()
		mux.HandleFunc("GET /slow", func(http.ResponseWriter, *http.Request) {
			close(entered)
			<-leave
		})
		f.handler = f.Handler(mux)
		go func() {
			defer close(done)
			f.get("/slow")
		}()
		release = sync.OnceFunc(func() {
			close(leave)
			<-done
		})
		select {
		case <-entered:
			if f.Stats().Semaphore.Held == 1 {
				f.t.Cleanup(release)
				return release
			}
		case <-done:
		}
		release()
	}
	f.t.Fatalf("no request got a permit within %v; the log:\n%s", longest, f.log)
	return nil
}

// Close does not release a permit that a request still holds.
func TestCloseAwaitsPermits(t *testing.T) {
	f := open(t, shop(testenv.Redis(t).URL(), nowhere(t), slowRule))
	release := holdPermit(f)
	closed := make(chan error, 1)
	go func() { closed <- f.Close(t.Context()) }()
	select {
	case err := <-closed:
		t.Errorf("Close returned %v while a request holds a permit", err)
		closed <- err
	case <-time.After(200 * time.Millisecond):
	}
	release()
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
}

// A request that does not end cannot block the process from closing.
func TestCloseEndsInTime(t *testing.T) {
	f := open(t, shop(testenv.Redis(t).URL(), nowhere(t), slowRule))
	holdPermit(f)
	short, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	if err := f.Close(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close with no time: %v", err)
	}
	select {
	case <-f.finished:
	case <-time.After(longest):
		t.Error("the tasks did not end")
	}
}

// A client that belongs to the program stays open.
func TestWithRedis(t *testing.T) {
	server := testenv.Redis(t)
	client, err := hotkeys.NewClient(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	f := open(t, shop("redis://"+nowhere(t), nowhere(t), searchRule), WithRedis(client))
	publish(t, server.URL(), "shop", nil, "GET /search?q=phone")
	f.await("a hot key", func() bool { return len(f.HotKeys()) == 1 })
	if err := f.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the program's client: %v", err)
	}
	patient := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { patient.Close() })
	if _, err := Open(t.Context(), f.path, WithRedis(patient)); err == nil || !strings.Contains(err.Error(), "ContextTimeoutEnabled") {
		t.Errorf("a client that ignores deadlines: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	good := shop("redis://127.0.0.1:1/0", "127.0.0.1:1", searchRule)
	for name, test := range map[string]struct {
		text string
		opts []Option
		want string
	}{
		"no rules":       {text: "namespace: shop\n", want: "rules is missing"},
		"a wrong word":   {text: strings.Replace(good, "hot: 200/s", "hto: 200/s", 1), want: "hto"},
		"redis":          {text: strings.Replace(good, "redis://127", "http://127", 1), want: "redis"},
		"password":       {text: strings.Replace(good, `"redis://127.0.0.1:1/0"`, "{url: redis://127.0.0.1:1/0, password_file: /does/not/exist}", 1), want: "/does/not/exist"},
		"kafka":          {text: "namespace: shop\naggregator: {source: kafka}\nrules:\n  - " + searchRule + "\n", want: `import _ "github.com/hotparam/hotparam/transport/kafka"`},
		"name":           {text: good, opts: []Option{WithName("a b")}, want: "WithName"},
		"an option":      {text: good, opts: []Option{WithMiddleware(middleware.WithServe("nobody", http.NotFoundHandler()))}, want: `no rule "nobody"`},
		"a named secret": {text: strings.Replace(good, "aggregator: {", "aggregator: {key_env: HOTPARAM_NO_SUCH_KEY, trust: signed, ", 1), want: "HOTPARAM_NO_SUCH_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "hotparam.yaml")
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			h, err := Open(t.Context(), path, test.opts...)
			if err == nil {
				_ = h.Close(t.Context())
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q in it", err, test.want)
			}
		})
	}
	if _, err := Open(t.Context(), filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
}

func TestRegisterTwice(t *testing.T) {
	for _, source := range []string{"statsd", "graphite", "carrier-pigeon"} {
		panicked := func() (p any) {
			defer func() { p = recover() }()
			for range 2 {
				Register(source, func(TransportConfig) (Transport, error) { return Transport{}, nil })
			}
			return nil
		}()
		if panicked == nil {
			t.Errorf("%s was registered twice", source)
		}
	}
}
