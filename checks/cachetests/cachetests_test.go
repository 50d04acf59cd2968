package cachetests

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/internal/onhot"
	"github.com/hotparam/hotparam/rules"
)

var update = flag.Bool("update", false, "write testdata/checks.txt")

// policies are those under which the tests run.
var policies = []struct {
	name   string
	policy func(test *suiteTest) rules.OnHot
}{
	{"narrow", func(*suiteTest) rules.OnHot { return rules.OnHot{Coalesce: true, Cache: time.Minute} }},
	{"wide", func(test *suiteTest) rules.OnHot { return wide(test, time.Minute, 0) }},
	{"stale", func(test *suiteTest) rules.OnHot { return wide(test, time.Second, 10*time.Minute) }},
}

// wide returns a policy that names all by which the test's answers vary, and the statuses that
// caches may keep.
func wide(test *suiteTest, cache, stale time.Duration) rules.OnHot {
	o := rules.OnHot{
		Coalesce: true, Cache: cache, Stale: stale,
		Status: []int{200, 203, 204, 299, 301, 302, 303, 307, 308, 400, 404, 405, 410, 414, 499},
	}
	named := make(map[string]bool)
	for _, x := range test.Requests {
		for _, f := range x.ResponseHeaders {
			if f.name != "Vary" {
				continue
			}
			for name := range strings.SplitSeq(f.args[0].(string), ",") {
				name = "header:" + strings.TrimSpace(name)
				if name != "header:" && name != "header:*" && !named[name] { // a policy cannot name *
					named[name] = true
					o.Vary = append(o.Vary, name)
				}
			}
		}
	}
	return o
}

func TestSuite(t *testing.T) {
	groups := loadSuite(t)
	var checks strings.Builder
	used := make(map[string]bool)
	for _, p := range policies {
		passed := make(map[string]int)
		for _, g := range groups {
			for _, test := range g.Tests {
				result := runBehindCache(t, &test, p.policy(&test))
				if result.passed() {
					passed[test.Kind]++
				}
				if test.Kind == "check" && p.name == "wide" {
					fmt.Fprintf(&checks, "%-4s %s\n", map[bool]string{true: "yes", false: "no"}[result.passed()], test.ID)
				}
				if test.Kind == "check" || test.Kind == "optimal" && p.name != "wide" {
					continue
				}
				switch e := findException(p.name, g.ID+"/"+test.ID, used); {
				case e == nil && !result.passed():
					t.Errorf("%s, %s policy: %s, %s: %s", test.ID, p.name, test.Kind, test.Name, result.failure)
				case e == nil:
				case result.passed():
					t.Errorf("%s, %s policy: passes, although %s", test.ID, p.name, e.reason)
				case !strings.Contains(result.statuses, e.status):
					t.Errorf("%s, %s policy: no Cache-Status has %q, and so it is not that %s:\n%s", test.ID, p.name, e.status, e.reason, result.statuses)
				}
			}
		}
		t.Logf("%s policy: passed: %v", p.name, passed)
	}
	for _, e := range exceptions {
		for _, pattern := range e.tests {
			if !used[e.policy+pattern] {
				t.Errorf("no test is %s", pattern)
			}
		}
	}
	const file = "testdata/checks.txt"
	if *update {
		if err := os.WriteFile(file, []byte(checks.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(file); err != nil || string(kept) != checks.String() {
		t.Errorf("%s differs, %v: if that is meant, run go test ./checks/cachetests -update", file, err)
	}
}

// findException returns the exception that names a test, or nil, and records the pattern.
func findException(policy, name string, used map[string]bool) *exception {
	for i, e := range exceptions {
		for _, pattern := range e.tests {
			if ok, _ := path.Match(pattern, name); ok && (e.policy == "" || e.policy == policy) {
				used[e.policy+pattern] = true
				return &exceptions[i]
			}
		}
	}
	return nil
}

// Without a cache, a test that expects an answer from one does not pass.
func TestWithoutCache(t *testing.T) {
	expected := 0
	for _, g := range loadSuite(t) {
		for _, test := range g.Tests {
			cached := false
			for _, x := range test.Requests {
				cached = cached || x.ExpectedType == "cached"
			}
			if !cached {
				continue
			}
			expected++
			result := inBubble(t, &test, func(o *origin) (http.Handler, func()) { return o, func() {} })
			if result.passed() {
				t.Errorf("%s passes", test.ID)
			}
		}
	}
	if expected < 150 {
		t.Errorf("%d tests expect an answer from a cache", expected)
	}
}

// runBehindCache runs a test against a cache with a policy, in front of the origin.
func runBehindCache(t *testing.T, test *suiteTest, o rules.OnHot) outcome {
	t.Helper()
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	return inBubble(t, test, func(origin *origin) (http.Handler, func()) {
		cache, err := onhot.New(onhot.Config{})
		if err != nil {
			t.Fatal(err)
		}
		front := &front{cache, onhot.NewPolicy(o), origin}
		return front, func() {
			if err := cache.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
}

// front is what a guard is to the cache: all requests are hot, and those that change something
// invalidate the answers to their target.
type front struct {
	cache  *onhot.Cache
	policy *onhot.Policy
	origin *origin
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	res := f.cache.Do(r, f.policy, "hot key", func(bool) (http.Handler, bool) { return f.origin, true })
	if res.Shared() {
		status, body := res.Reply(r, w.Header())
		w.WriteHeader(status)
		_, _ = w.Write(body) // the client may have left
	} else if res.How == onhot.Alone {
		res.Explain(w.Header())
		f.origin.ServeHTTP(w, r)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead && f.origin.lastStatus() < http.StatusBadRequest {
		f.cache.InvalidateTarget(onhot.TargetID(r.Host, r.URL.EscapedPath(), r.URL.RawQuery))
	}
}

// inBubble runs a test in a bubble, against a server of a handler. The second function that build
// returns closes the handler.
func inBubble(t *testing.T, test *suiteTest, build func(o *origin) (http.Handler, func())) (result outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// The suite has dates between 2000, when bubbles begin, and now.
		time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
		o := &origin{test: test, body: fmt.Sprintf("%036x", len(test.ID))}
		h, closeHandler := build(o)
		defer closeHandler()
		conns := make(pipes)
		server := &http.Server{Handler: h}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = server.Serve(conns)
		}()
		result = (&client{test: test, origin: o, dial: conns.dial}).run()
		_ = server.Close()
		<-done
	})
	return result
}

// pipes is a listener within the process, as bubbles need.
type pipes chan net.Conn

func (l pipes) dial() (net.Conn, error) {
	a, b := net.Pipe()
	l <- b
	return a, nil
}

// Accept implements [net.Listener].
func (l pipes) Accept() (net.Conn, error) {
	if c, ok := <-l; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

// Close implements [net.Listener].
func (l pipes) Close() error { close(l); return nil }

// Addr implements [net.Listener].
func (l pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }
