package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"golang.org/x/sync/errgroup"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/statsdsink"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/redislimiter"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// worker is an instance whose requests take time. Its limits are in a real Redis, for which it
// waits as long as a busy machine needs.
type worker struct {
	guard     *middleware.Guard
	semaphore *redislimiter.Semaphore
	server    *httptest.Server
	end       func() error
}

// work is the work that the requests of all workers in this process do.
type work struct {
	mu        sync.Mutex
	gate      chan struct{} // requests with ?hold=gate wait until it is closed
	active    int           // number of requests at work
	maxAtOnce int
	done      []stint
}

// stint is the time in which a request was at work.
type stint struct{ from, to time.Time }

func newWork() *work { return &work{gate: make(chan struct{})} }

func (w *work) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	begun, gate := w.beginRequest()
	if hold := r.FormValue("hold"); hold == "gate" {
		<-gate
	} else if d, err := time.ParseDuration(hold); err == nil {
		time.Sleep(d)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active--
	w.done = append(w.done, stint{begun, time.Now()})
}

func (w *work) beginRequest() (time.Time, chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active++
	w.maxAtOnce = max(w.maxAtOnce, w.active)
	return time.Now(), w.gate
}

// atWork returns how many requests are at work, and the most that were at once.
func (w *work) atWork() (now, maximum int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.active, w.maxAtOnce
}

// open lets all requests at the gate continue, and closes it.
func (w *work) open() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.gate)
	w.gate = make(chan struct{})
}

// busiest returns the most requests that were at work at once, among the of requests that began
// in the span.
func (w *work) busiest(from, to time.Time) (atOnce, total int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var in []stint
	for _, s := range w.done {
		if s.from.After(from) && s.from.Before(to) {
			in = append(in, s)
		}
	}
	for _, one := range in {
		n := 0
		for _, s := range in {
			if !s.from.After(one.from) && s.to.After(one.from) {
				n++
			}
		}
		atOnce = max(atOnce, n)
	}
	return atOnce, len(in)
}

func workRules(text string) (*rules.Rules, error) {
	file, err := config.Parse("rules", []byte("namespace: shop\nrules:"+text))
	if err != nil {
		return nil, err
	}
	return file.Rules, nil
}

func newWorker(addr, rulesText string, lease time.Duration, handler http.Handler) (*worker, error) {
	rules, err := workRules(rulesText)
	if err != nil {
		return nil, err
	}
	client := redis.NewClient(&redis.Options{
		Addr: addr, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true, PoolSize: 100,
		ReadTimeout: patience, WriteTimeout: patience, PoolTimeout: patience, DialTimeout: patience,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	w := &worker{}
	sink, err := statsdsink.New(statsdsink.Config{Rules: rules, Addrs: []string{"127.0.0.1:9"}})
	if err != nil {
		return nil, err
	}
	counts, err := collector.New(collector.Config{Sink: sink, Rules: rules})
	if err != nil {
		return nil, err
	}
	store, err := redislimiter.New(client, redislimiter.Config{Namespace: "shop", Timeout: patience})
	if err != nil {
		return nil, err
	}
	backend, err := limiter.NewFailover(store, limiter.FailoverConfig{Timeout: patience})
	if err != nil {
		return nil, err
	}
	w.semaphore, err = redislimiter.NewSemaphore(client, redislimiter.SemaphoreConfig{Namespace: "shop", Lease: lease, Timeout: patience})
	if err != nil {
		return nil, err
	}
	w.guard, err = middleware.New(rules, counts, middleware.WithBackend(backend), middleware.WithSemaphore(w.semaphore))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /work", handler)
	w.server = httptest.NewServer(w.guard.Handler(mux))
	ctx, cancel := context.WithCancel(context.Background())
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return counts.Run(ctx) })
	group.Go(func() error { return w.guard.Run(ctx) })
	group.Go(func() error { return w.semaphore.Run(ctx) })
	w.end = sync.OnceValue(func() error {
		w.server.Close()
		cancel()
		return errors.Join(group.Wait(), client.Close())
	})
	return w, nil
}

// crew are workers in this process, which do the same work.
type crew struct {
	*fleet
	*work
	workers []*worker
}

func newCrew(t *testing.T, n int, rules string) *crew {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes: left out with -short")
	}
	c := &crew{fleet: newFleet(t, programs{}, rules), work: newWork()}
	for range n {
		w, err := newWorker(c.redis.Addr(), rules, 0, c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			c.http.CloseIdleConnections()
			c.open() // requests at the gate would keep the server from ending
			if err := w.end(); err != nil {
				t.Error(err)
			}
		})
		c.workers = append(c.workers, w)
	}
	return c
}

func (c *crew) urls(path string) (urls []string) {
	for _, w := range c.workers {
		urls = append(urls, w.server.URL+path)
	}
	return urls
}

// idle waits until no process holds a permit, and Redis has none either.
func (c *crew) idle() {
	c.t.Helper()
	within(c.t, patience, "all permits are given back", func() bool {
		for _, w := range c.workers {
			if s := w.semaphore.Stats(); s.Held != 0 || s.Owed != 0 || s.Waiting != 0 {
				return false
			}
		}
		return c.leases() == 0
	})
}

// leases returns the number of unexpired leases in Redis.
func (c *crew) leases() (n int64) {
	c.t.Helper()
	ctx := c.t.Context()
	now, err := c.client.Time(ctx).Result()
	if err != nil {
		c.t.Fatal(err)
	}
	keys, err := c.client.Keys(ctx, "hotparam:{shop/*}:semaphore").Result()
	if err != nil {
		c.t.Fatal(err)
	}
	for _, key := range keys {
		n += c.client.ZCount(ctx, key, strconv.FormatInt(now.UnixMicro(), 10), "+inf").Val()
	}
	return n
}

// mustServe checks that exactly so many requests are served at once.
func (c *crew) mustServe(permits int, path string) {
	c.t.Helper()
	var asking sync.WaitGroup
	urls := c.urls(path)
	for i := range permits {
		asking.Go(func() { c.ask(urls[i%len(urls)]) })
		within(c.t, patience, fmt.Sprintf("%d of %d at work", i+1, permits), func() bool {
			now, _ := c.atWork()
			return now == i+1
		})
	}
	for _, url := range urls {
		if a := c.ask(url); a.status != http.StatusServiceUnavailable {
			c.t.Errorf("%d though %d are at work", a.status, permits)
		}
	}
	c.open()
	asking.Wait()
	c.idle()
}

// workerVariable makes the test binary a worker with the Redis at this address.
const workerVariable = "HOTPARAM_E2E_WORKER"

const crashLease = 3 * time.Second

// beWorker runs a worker in a process of its own until it is asked to end.
func beWorker(addr string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	w, err := newWorker(addr, os.Getenv(workerVariable+"_RULES"), crashLease, newWork())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Printf("worker is up: %s\n", w.server.URL)
	<-ctx.Done()
	if err := w.end(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// startWorker starts a worker process and returns its URL.
func (f *fleet) startWorker() (kill func(), url string) {
	f.t.Helper()
	p := f.startSelf(workerVariable+"="+f.redis.Addr(), workerVariable+"_RULES="+f.rules)
	return func() { p.Kill() }, p.WaitFor(`worker is up: (\S+)`)[1]
}
