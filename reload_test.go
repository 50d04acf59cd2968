package hotparam

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// A changed file is put in force while requests are served, unless it is invalid.
func TestFileChanges(t *testing.T) {
	url, statsd := "redis://"+nowhere(t), nowhere(t)
	f := open(t, shop(url, statsd, searchRule, fmt.Sprintf(productRule, 2)))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var requests sync.WaitGroup
	var refused atomic.Int64
	requests.Go(func() {
		testenv.Every(ctx, time.Millisecond, func(int) {
			if f.get("/healthz") != http.StatusOK {
				refused.Add(1)
			}
		})
	})
	if n := f.passes(10, "/products"); n != 2 {
		t.Errorf("%d of 10 passed, want a burst of 2", n)
	}
	was := f.Stats().Rules
	f.write(shop(url, statsd, searchRule, fmt.Sprintf(productRule, 5)))
	f.awaitLog("rules are in force")
	now := f.Stats().Rules
	if now.Reloads != 1 || now.Version == was.Version || !strings.Contains(f.log.String(), now.Version) {
		t.Errorf("%+v after %+v", now, was)
	}
	if n := f.passes(10, "/products"); n != 3 {
		t.Errorf("%d of 10 passed after the burst grew from 2 to 5, want 3", n)
	}

	for i, bad := range []string{
		"rules: [",
		strings.Replace(shop(url, statsd, fmt.Sprintf(productRule, 9)), "namespace: shop", "namespace: toys", 1), // which needs a restart
		"", // truncated
	} {
		f.write(bad)
		f.await("rejection", func() bool { return f.Stats().Rules.Rejected == uint64(i+1) })
		if got := f.Stats().Rules; got.Version != now.Version || got.Problem == "" {
			t.Errorf("%+v after a bad file, want the rules before", got)
		}
	}
	if n := f.logged("the rules stay as they are"); n != 3 {
		t.Errorf("three bad files were logged %d times:\n%s", n, f.log)
	}
	if n := f.passes(3, "/products"); n != 0 {
		t.Errorf("%d of 3 passed after bad files, want 0", n)
	}

	f.write(shop(url, nowhere(t), searchRule, fmt.Sprintf(productRule, 6)))
	f.await("the good file", func() bool { s := f.Stats().Rules; return s.Reloads == 2 && s.Problem == "" })
	f.awaitLog("they need a restart\" sections=statsd")
	if n := f.passes(10, "/products"); n != 1 {
		t.Errorf("%d of 10 passed after the burst grew from 5 to 6, want 1", n)
	}
	stop()
	requests.Wait()
	if n := refused.Load(); n != 0 {
		t.Errorf("%d requests of another rule were refused meanwhile", n)
	}
}

func TestFileIsAwayForAWhile(t *testing.T) {
	text := shop("redis://"+nowhere(t), nowhere(t), fmt.Sprintf(productRule, 2))
	f := open(t, text)
	if err := os.Remove(f.path); err != nil {
		t.Fatal(err)
	}
	f.awaitLog("the file cannot be read")
	if err := f.Reload(); err == nil || f.Stats().Rules.Problem == "" {
		t.Errorf("Reload without a file: %v, %+v", err, f.Stats().Rules)
	}
	f.write(text)
	f.awaitLog("the file can be read again")
	if err := f.Reload(); err != nil || f.Stats().Rules.Problem != "" {
		t.Errorf("Reload: %v, %+v", err, f.Stats().Rules)
	}
}

func TestReload(t *testing.T) {
	url, statsd := "redis://"+nowhere(t), nowhere(t)
	f := open(t, shop(url, statsd, fmt.Sprintf(productRule, 2)))
	if n := f.passes(10, "/products"); n != 2 {
		t.Errorf("%d of 10 passed, want a burst of 2", n)
	}
	f.write(shop(url, statsd, fmt.Sprintf(productRule, 7)))
	if err := f.Reload(); err != nil {
		t.Fatal(err)
	}
	if n := f.passes(10, "/products"); n != 5 {
		t.Errorf("%d of 10 passed after the burst grew from 2 to 7, want 5", n)
	}
	if err := f.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := f.Reload(); !errors.Is(err, ErrClosed) || f.Stats().Rules.Rejected != 0 {
		t.Errorf("Reload after Close: %v, %+v", err, f.Stats().Rules)
	}
	// A file that changes while Close begins is not refused.
	f.write(shop(url, statsd, fmt.Sprintf(productRule, 9)))
	if err := f.file.Reload(); !errors.Is(err, context.Canceled) || f.Stats().Rules.Rejected != 0 || strings.Contains(f.log.String(), "invalid") {
		t.Errorf("a change after Close: %v, %+v", err, f.Stats().Rules)
	}
}

// The first limit with scope: share makes the instance a counted member. Without such a limit an
// instance writes only heartbeats to Redis.
func TestFirstSharedLimit(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	f := open(t, shop(server.URL(), nowhere(t), fmt.Sprintf(productRule, 100)))
	f.await("Redis", func() bool { return f.Stats().Watcher.Connected })
	for _, key := range f.client.Keys(t.Context(), "*").Val() {
		if !strings.Contains(key, ":members:") {
			t.Errorf("key %s in Redis", key)
		}
	}
	other := open(t, shop(server.URL(), nowhere(t), `{id: products, match: {route: "GET /products"}, limit: {rate: 10/1h, burst: 10, scope: share}}`))
	f.write(shop(server.URL(), nowhere(t), `{id: products, match: {route: "GET /products"}, limit: {rate: 10/1h, burst: 10, scope: share}}`))
	f.await("two members", func() bool { return f.Stats().Members.Count == 2 && other.Stats().Members.Count == 2 })
	f.await("a share each", func() bool { return f.Stats().Members.Settled && other.Stats().Members.Settled })
	if n := other.passes(20, "/products"); n != 5 {
		t.Errorf("%d of 20 passed, want half of 10", n)
	}
	if err := other.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.await("one member", func() bool { return f.Stats().Members.Count == 1 })
}

// An instance is no longer counted after its last limit with scope: share is removed. It is
// counted again once it gets such a limit.
func TestLastSharedLimit(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	shared := shop(server.URL(), nowhere(t), `{id: products, match: {route: "GET /products"}, limit: {rate: 10/1h, burst: 10, scope: share}}`)
	alone := shop(server.URL(), nowhere(t), fmt.Sprintf(productRule, 10))
	f, other := open(t, shared, WithName("a")), open(t, shared, WithName("b"))
	for range 2 {
		f.await("two members", func() bool { return f.Stats().Members.Count == 2 && other.Stats().Members.Count == 2 })
		f.write(alone)
		other.await("one member", func() bool { return other.Stats().Members.Count == 1 })
		f.write(shared)
	}
}

// A rule with a threshold that is added at run time is counted and its hot keys are limited, by
// this instance alone while there is no aggregator.
func TestThresholdsChange(t *testing.T) {
	url, statsd := "redis://"+nowhere(t), nowhere(t)
	f := open(t, shop(url, statsd, fmt.Sprintf(productRule, 100)))
	if m := mismatchOf(f.Hotparam, "api"); m.detects() {
		t.Error("an aggregator is expected for rules without thresholds")
	}
	const rule = `{id: terms, match: {route: "GET /search"}, by: [q], hot: %s, limit: {rate: 1/1h, burst: 5}}`
	f.write(shop(url, statsd, fmt.Sprintf(rule, "50/10s")))
	f.await("the new rule", func() bool { return f.Stats().Rules.Reloads == 1 })
	if m := mismatchOf(f.Hotparam, "api"); !m.detects() {
		t.Error("no aggregator is expected for a rule with a threshold")
	}
	f.passes(60, "/search?q=phone")
	f.await("a hot key", func() bool { return len(f.HotKeys()) == 1 })
	if n := f.passes(20, "/search?q=phone"); n > 5 {
		t.Errorf("%d of 20 passed of a hot key, want 5 at most", n)
	}
	f.write(shop(url, statsd, fmt.Sprintf(rule, "40/10s"))) // the key stays hot
	f.await("the lower threshold", func() bool {
		hot := f.HotKeys()
		return len(hot) == 1 && hot[0].Cause == "40/10s"
	})
	if n := f.passes(20, "/search?q=phone"); n != 0 {
		t.Errorf("%d of 20 passed by the changed rule: what was taken was forgiven", n)
	}
	f.write(shop(url, statsd, fmt.Sprintf(productRule, 100)))
	f.await("no hot key", func() bool { return len(f.HotKeys()) == 0 })
	if n := f.passes(20, "/search?q=phone"); n != 20 {
		t.Errorf("%d of 20 passed without the rule", n)
	}
}

func TestSignals(t *testing.T) {
	f := open(t, shop("redis://"+nowhere(t), nowhere(t), fmt.Sprintf(productRule, 2)), WithSignals())
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	f.awaitLog("changed=false") // it was read
}
