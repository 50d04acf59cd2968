package onhot

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// expect reports a response that is not as wanted. how is the text of the result.
func expect(t *testing.T, w *httptest.ResponseRecorder, res Result, how string, status int, body string) {
	t.Helper()
	if res.String() != how || w.Code != status || w.Body.String() != body {
		t.Errorf("%s, %d %q; want %s, %d %q", res, w.Code, w.Body, how, status, body)
	}
}

// group runs n requests at once and returns the results in the order of their ends.
func (s *site) group(n int, headers ...string) (results chan Result, wait func()) {
	results = make(chan Result, n)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			w, res := s.ask("GET", "/", headers...)
			if w.Code == 200 && w.Body.String() != "answer" {
				res.How = unknown
			}
			results <- res
		})
	}
	return results, wg.Wait
}

// tally counts results by their text.
func tally(results chan Result) map[string]int {
	n := make(map[string]int)
	for len(results) > 0 {
		n[(<-results).String()]++
	}
	return n
}

func wantTally(t *testing.T, results chan Result, want map[string]int) {
	t.Helper()
	if got := tally(results); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// slow returns a handler that answers after d, unless its context ends.
func slow(d time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(d):
			_, _ = w.Write([]byte("answer"))
		case <-r.Context().Done():
			_, _ = w.Write([]byte("cancelled"))
		}
	}
}

func TestJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, rules.OnHot{Coalesce: true}, slow(100*time.Millisecond))
		defer closeCache(t, s.Cache)
		results, wait := s.group(50)
		wait()
		wantTally(t, results, map[string]int{"led": 1, "joined": 49})
		if n := s.calls.Load(); n != 1 {
			t.Errorf("%d calls", n)
		}
		// Without cache nothing is kept.
		if _, res := s.ask("GET", "/"); res.How != Led || s.calls.Load() != 2 {
			t.Error(res)
		}
	})
}

func TestFreshThenStaleThenNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		s := newSite(t, rules.OnHot{Cache: time.Second, Stale: 2 * time.Second}, func(w http.ResponseWriter, r *http.Request) {
			n++
			fmt.Fprint(w, n)
		})
		defer closeCache(t, s.Cache)
		ask := func(how, body, status, age string) {
			t.Helper()
			w, res := s.ask("GET", "/")
			expect(t, w, res, how, 200, body)
			if got := w.Header().Get("Cache-Status"); got != status {
				t.Errorf("Cache-Status: %s, want %s", got, status)
			}
			if got := w.Header().Get("Age"); got != age {
				t.Errorf("Age: %q, want %q", got, age)
			}
			synctest.Wait()
		}
		ask("led", "1", "hotparam; fwd=miss", "")
		time.Sleep(time.Second - 1)
		ask("hit", "1", "hotparam; hit", "0")
		time.Sleep(1)
		ask("stale", "1", "hotparam; hit; ttl=-1", "1") // and refreshed
		ask("hit", "2", "hotparam; hit", "0")
		time.Sleep(2500 * time.Millisecond)
		ask("stale", "2", "hotparam; hit; ttl=-2", "2")
		time.Sleep(3 * time.Second)
		ask("led", "4", "hotparam; fwd=miss", "")
		if got := s.Stats(); got.How[Hit] != 2 || got.How[Stale] != 2 || got.How[Led] != 2 || got.Refreshes != 2 {
			t.Errorf("%+v", got.Counters)
		}
	})
}

// While a stale answer is used, one refresh runs. Its failure leaves the answer, and another that is
// not for sharing removes it.
func TestStale(t *testing.T) {
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		next    string // how the next request is answered
		calls   int64  // of the refreshes; zero if it depends on who is first
	}{
		{"slow", slow(500 * time.Millisecond), "stale", 1},
		{"failed", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) }, "stale", 1},
		{"panic", func(w http.ResponseWriter, r *http.Request) { panic("x") }, "stale", 1},
		{"truncated", func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Content-Length", "5") }, "stale", 1},
		{"private", func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Cache-Control", "private") }, "alone: private", 0},
		{"gone", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(404) }, "alone: status", 0},
		{"over", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(make([]byte, 2<<20)) }, "alone: over", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, rules.OnHot{Coalesce: true, Cache: time.Second, Stale: time.Hour}, slow(0))
				defer closeCache(t, s.Cache)
				s.get("/")
				s.handler = c.handler
				s.calls.Store(0)
				time.Sleep(2 * time.Second)
				results, wait := s.group(20)
				wait()
				synctest.Wait()
				if c.next == "stale" {
					wantTally(t, results, map[string]int{"stale": 20})
				}
				_, res := s.ask("GET", "/")
				if res.String() != c.next || c.calls > 0 && s.calls.Load() != c.calls {
					t.Errorf("%s after %d calls; want %s after %d", res, s.calls.Load(), c.next, c.calls)
				}
				if c.next == "stale" && c.name != "slow" {
					// Another refresh a second after the failure.
					time.Sleep(failedFor)
					s.get("/")
					synctest.Wait()
					if n := s.calls.Load(); n != 2 {
						t.Errorf("%d refreshes, want another", n)
					}
				}
			})
		})
	}
}

// A stale answer is used though the limit refuses its refresh, which must not wait.
func TestStaleWhenTheLimitRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, rules.OnHot{Cache: time.Second, Stale: time.Hour}, slow(0))
		defer closeCache(t, s.Cache)
		s.get("/")
		s.refuse.Store(true)
		time.Sleep(2 * time.Second)
		w, res := s.ask("GET", "/")
		expect(t, w, res, "stale", 200, "answer")
		if s.calls.Load() != 1 || s.Stats().Refreshes != 0 {
			t.Error("it was refreshed")
		}
		var asked []bool
		ask := func(target string) {
			s.Serve(httptest.NewRecorder(), newRequest("GET", target), s.policy, "hot key", func(refresh bool) (http.Handler, bool) {
				asked = append(asked, refresh)
				return nil, false
			})
		}
		ask("/")
		ask("/other")
		if fmt.Sprint(asked) != "[true false]" {
			t.Error(asked)
		}
	})
}

// If the limit refuses the leader, another request takes its place, and each asks the limit at most
// twice.
func TestLimitRefusesTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, rules.OnHot{Coalesce: true, Cache: time.Second}, slow(10*time.Millisecond))
		defer closeCache(t, s.Cache)
		s.refuse.Store(true)
		w, res := s.ask("GET", "/")
		expect(t, w, res, "refused", 429, "")

		// The first waits for the limit, which refuses it then.
		results := make(chan Result, 10)
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				r := newRequest("GET", "/")
				results <- s.Serve(httptest.NewRecorder(), r, s.policy, "", func(bool) (http.Handler, bool) {
					if i == 0 {
						time.Sleep(100 * time.Millisecond)
					}
					return s.handler, i != 0
				})
			})
			synctest.Wait()
		}
		wg.Wait()
		wantTally(t, results, map[string]int{"led": 1, "joined": 8, "refused": 1})

		// The limit refuses all.
		asked := 0
		for range 10 {
			wg.Go(func() {
				results <- s.Serve(httptest.NewRecorder(), newRequest("GET", "/other"), s.policy, "", func(bool) (http.Handler, bool) {
					s.mu.Lock()
					asked++
					s.mu.Unlock()
					time.Sleep(100 * time.Millisecond)
					return nil, false
				})
			})
		}
		wg.Wait()
		wantTally(t, results, map[string]int{"refused": 10})
		if asked > 20 {
			t.Errorf("the limit was asked %d times", asked)
		}
	})
}

func TestAdmitPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, hour, slow(0))
		defer closeCache(t, s.Cache)
		func() {
			defer func() { _ = recover() }()
			s.Serve(httptest.NewRecorder(), newRequest("GET", "/"), s.policy, "hot key", func(bool) (http.Handler, bool) { panic("x") })
		}()
		if _, res := s.ask("GET", "/"); res.How != Led {
			t.Error(res)
		}
	})
}

// After wait each goes alone, but for the client of the leader, whose request is at the handler.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, rules.OnHot{Coalesce: true, Wait: 300 * time.Millisecond}, slow(2*time.Second))
		defer closeCache(t, s.Cache)
		start := time.Now()
		results, wait := s.group(10)
		time.Sleep(301 * time.Millisecond)
		if n := s.calls.Load(); n != 10 {
			t.Errorf("%d calls after the wait", n)
		}
		wait()
		wantTally(t, results, map[string]int{"led": 1, "alone: wait": 9})
		if d := time.Since(start); d != 2300*time.Millisecond {
			t.Error(d)
		}
	})
}

// A leader that does not end by its deadline is not waited for, and no other starts until it has
// returned.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		s := newSite(t, rules.OnHot{Coalesce: true, Cache: time.Hour, Wait: time.Hour}, func(w http.ResponseWriter, r *http.Request) {
			if isLeader(r) {
				<-hang
			}
			_, _ = w.Write([]byte("answer"))
		})
		defer closeCache(t, s.Cache)
		results, wait := s.group(5)
		wait()
		wantTally(t, results, map[string]int{"alone: deadline": 5})
		for range 5 {
			time.Sleep(2 * failedFor)
			if _, res := s.ask("GET", "/"); res.String() != "alone: deadline" {
				t.Error(res)
			}
		}
		if n := s.Stats().Leaders; n != 1 {
			t.Errorf("%d leaders", n)
		}
		close(hang)
		synctest.Wait()
		if _, res := s.ask("GET", "/"); res.How != Led {
			t.Errorf("%s: an answer after the deadline was stored", res)
		}
	})
}

// What a handler writes when its context ends is not an answer, though it may return before the end
// of its time is noticed elsewhere.
func TestDeadlineIsSeenByTheHandler(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the handler is first
	c := newCache(t, Config{})
	defer closeCache(t, c)
	p, r := NewPolicy(hour), newRequest("GET", "/")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 20 {
		f, _, _ := c.enter("key", p, c.generations.stamp(r, ""), nil, false)
		c.runLeader(f, slow(time.Hour), p.leaderRequest(ctx, r), cancel)
		if f.answer != nil || f.reason != ReasonDeadline {
			t.Errorf("%v %q", f.answer, f.reason)
		}
		c.Flush()
	}
}

func TestClientsThatLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, rules.OnHot{Coalesce: true, Wait: time.Hour}, slow(time.Second))
		defer closeCache(t, s.Cache)
		results := make(chan Result, 3)
		var cancels []context.CancelFunc
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			cancels = append(cancels, cancel)
			go func() { results <- s.serve(httptest.NewRecorder(), newRequest("GET", "/").WithContext(ctx)) }()
			synctest.Wait()
		}
		cancels[0]() // the leader's client
		cancels[1]()
		synctest.Wait()
		wantTally(t, results, map[string]int{"gone": 2})
		time.Sleep(time.Second)
		synctest.Wait()
		wantTally(t, results, map[string]int{"joined": 1})
		cancels[2]()
		if n := s.calls.Load(); n != 1 {
			t.Errorf("%d calls", n)
		}
	})
}

// Whatever a leader's handler does that is not for sharing, each request runs the handler by itself,
// with all that it had.
func TestNotForSharing(t *testing.T) {
	const personal = "personal"
	leaders := map[string]func(w http.ResponseWriter, r *http.Request){
		"panic":   func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("secret")); panic("x") },
		"panic ":  func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) },
		"panic  ": func(w http.ResponseWriter, r *http.Request) { runtime.Goexit() },
		"truncated": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "10")
			_, _ = w.Write([]byte("short"))
		},
		"set-cookie":    func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Set-Cookie", "sid=1") },
		"set-cookie ":   func(w http.ResponseWriter, r *http.Request) { w.Header()["set-cookie"] = []string{"sid=1"} },
		"content-range": func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Content-Range", "bytes 0-1/2") },
		"trailer":       func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Trailer", "X") },
		"trailer ":      func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(nil); w.Header().Set("Trailer:X", "1") },
		"over":          func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Content-Length", "99999999") },
		"over ": func(w http.ResponseWriter, r *http.Request) {
			for range 1 << 10 {
				_, _ = w.Write(make([]byte, 1<<12))
			}
		},
		"failed":  func(w http.ResponseWriter, r *http.Request) { http.Error(w, "x", 503) },
		"status":  func(w http.ResponseWriter, r *http.Request) { http.Error(w, "x", 401) },
		"status ": func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(101) },
		"status  ": func(w http.ResponseWriter, r *http.Request) {
			if _, _, err := http.NewResponseController(w).Hijack(); err != nil {
				w.WriteHeader(426)
			}
		},
		"vary": func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Vary", "Cookie") },
		"stream": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for {
				if _, err := w.Write([]byte("data: x\n\n")); err != nil {
					return
				}
				_ = http.NewResponseController(w).Flush()
				time.Sleep(time.Second)
			}
		},
		"private": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "private")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done() // the leader is cancelled at once
		},
	}
	for name, lead := range leaders {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, rules.OnHot{Coalesce: true, Cache: time.Hour}, func(w http.ResponseWriter, r *http.Request) {
					if isLeader(r) {
						time.Sleep(100 * time.Millisecond)
						lead(w, r)
						return
					}
					_, _ = w.Write([]byte(r.Header.Get("X-User")))
				})
				defer closeCache(t, s.Cache)
				start := time.Now()
				var wg sync.WaitGroup
				for i := range 5 {
					wg.Go(func() {
						user := fmt.Sprint(personal, i)
						w, res := s.ask("GET", "/", "X-User", user)
						expect(t, w, res, "alone: "+strings.TrimSpace(name), 200, user)
						if w.Header().Get("Set-Cookie") != "" {
							t.Error(w.Header())
						}
					})
				}
				wg.Wait()
				if d := time.Since(start); d != 100*time.Millisecond {
					t.Errorf("they waited %v", d)
				}
				if n := s.calls.Load(); n != 6 {
					t.Errorf("%d calls", n)
				}
				// Remembered, and not for ever.
				if _, res := s.ask("GET", "/"); res.String() != "alone: "+strings.TrimSpace(name) || s.calls.Load() != 7 {
					t.Errorf("%s after %d calls", res, s.calls.Load())
				}
				time.Sleep(unsharedFor + 2*time.Second)
				s.handler = slow(0)
				if _, res := s.ask("GET", "/"); res.How != Led {
					t.Error(res)
				}
			})
		})
	}
}

// A request that arrives after an invalidation neither joins an older leader nor gets its answer.
func TestInvalidationDuringAFill(t *testing.T) {
	for name, invalidate := range map[string]func(s *site){
		"target": func(s *site) { s.InvalidateTarget(TargetID("example.com", "/", "")) },
		"tag":    func(s *site) { s.InvalidateTag(TagID("hot key")) },
		"all":    func(s *site) { s.Flush() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				version := 1
				s := newSite(t, rules.OnHot{Coalesce: true, Cache: time.Hour, Wait: time.Hour}, func(w http.ResponseWriter, r *http.Request) {
					seen := version
					time.Sleep(time.Second)
					fmt.Fprint(w, seen)
				})
				defer closeCache(t, s.Cache)
				var wg sync.WaitGroup
				ask := func(how, body string) {
					wg.Go(func() {
						w, res := s.ask("GET", "/")
						expect(t, w, res, how, 200, body)
					})
					synctest.Wait()
				}
				ask("led", "1")
				time.Sleep(500 * time.Millisecond)
				version = 2
				invalidate(s)
				ask("led", "2")
				ask("joined", "2")
				time.Sleep(500 * time.Millisecond) // the first ends
				ask("joined", "2")
				wg.Wait()
				ask("hit", "2")
				version = 3
				target := TargetID("example.com", "/", "")
				s.InvalidateTarget(targetApart(s.Cache, target, func(n int) uint64 { return TargetID("example.com", "/", fmt.Sprint("q=", n)) }))
				s.InvalidateTarget(targetApart(s.Cache, target, func(n int) uint64 { return TargetID(fmt.Sprint("example", n, ".com"), "/", "") }))
				s.InvalidateTag(tagApart(s.Cache, TagID("hot key")))
				ask("hit", "2")
				invalidate(s)
				ask("led", "3")
				wg.Wait()
			})
		})
	}
}

func TestConditions(t *testing.T) {
	modified := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(d time.Duration) string { return modified.Add(d).Format(http.TimeFormat) }
	s := newSite(t, rules.OnHot{Cache: time.Hour, Status: []int{200, 404}}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing" {
			w.Header().Set("Etag", `"a"`)
			w.WriteHeader(404)
			return
		}
		if r.URL.Path == "/undated" {
			return
		}
		w.Header().Set("Etag", `W/"a,b"`)
		w.Header().Set("Last-Modified", at(0))
		w.Header().Set("Content-Encoding", "identity")
		http.ServeContent(w, r, "x.txt", modified, bytes.NewReader([]byte("answer")))
	})
	defer closeCache(t, s.Cache)
	for _, c := range []struct {
		headers []string
		want    int
	}{
		{nil, 200},
		{[]string{"If-None-Match", `"a,b"`}, 304},
		{[]string{"If-None-Match", `W/"a,b"`}, 304},
		{[]string{"If-None-Match", `"x", W/"a,b"`}, 304},
		{[]string{"If-None-Match", `"x",,"a,b"`}, 304},
		{[]string{"If-None-Match", `"x"`, "If-None-Match", `"a,b"`}, 304},
		{[]string{"If-None-Match", ` *`}, 304},
		{[]string{"If-None-Match", `"a"`}, 200},
		{[]string{"If-None-Match", `a,b`}, 200},
		{[]string{"If-None-Match", `"a,b`}, 200},
		{[]string{"If-None-Match", `"x"`, "If-Modified-Since", at(0)}, 200}, // RFC 9110, section 13.1.3
		{[]string{"If-Modified-Since", at(0)}, 304},
		{[]string{"If-Modified-Since", at(time.Hour)}, 304},
		{[]string{"If-Modified-Since", at(-time.Second)}, 200},
		{[]string{"If-Modified-Since", "yesterday"}, 200},
	} {
		w := s.get("/", c.headers...)
		if w.Code != c.want || (w.Body.Len() == 0) != (c.want == 304) {
			t.Errorf("%q: %d %q, want %d", c.headers, w.Code, w.Body, c.want)
		}
		if h := w.Header(); h.Get("Etag") == "" || (h.Get("Content-Length") == "") != (c.want == 304) || (h.Get("Content-Type") == "") != (c.want == 304) {
			t.Errorf("%q: %v", c.headers, h)
		}
	}
	if n := s.calls.Load(); n != 1 {
		t.Errorf("%d calls", n)
	}
	for range 2 {
		if w := s.get("/undated", "If-Modified-Since", at(0)); w.Code != 200 {
			t.Errorf("%d for an answer without a date", w.Code)
		}
	}
	s.get("/missing")
	if w := s.get("/missing", "If-None-Match", `"a"`); w.Code != 404 {
		t.Error(w.Code)
	}
}

// HEAD is answered by GET's answer, and leads a GET, as in nginx and Varnish.
func TestHead(t *testing.T) {
	s := newSite(t, hour, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Error(r.Method)
		}
		_, _ = w.Write([]byte("answer"))
	})
	defer closeCache(t, s.Cache)
	w, res := s.ask("HEAD", "/")
	expect(t, w, res, "led", 200, "")
	if w.Header().Get("Content-Length") != "6" || w.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Error(w.Header())
	}
	w, res = s.ask("GET", "/")
	expect(t, w, res, "hit", 200, "answer")
	w, res = s.ask("HEAD", "/")
	expect(t, w, res, "hit", 200, "")
}

// The freshness that a request demands is kept.
func TestDemands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, rules.OnHot{Cache: 5 * time.Second, Stale: time.Hour}, slow(0))
		defer closeCache(t, s.Cache)
		s.get("/")
		time.Sleep(3 * time.Second)
		for _, c := range []struct{ directive, want string }{
			{"max-age=3", "hit"}, {"min-fresh=2", "hit"}, {"max-stale=1", "hit"}, {"min-fresh=3", "led"},
			{"max-age=0", "hit"}, // just refreshed
		} {
			if _, res := s.ask("GET", "/", "Cache-Control", c.directive); res.String() != c.want {
				t.Errorf("%s: %s, want %s", c.directive, res, c.want)
			}
		}
		time.Sleep(3 * time.Second)
		if _, res := s.ask("GET", "/", "Cache-Control", "max-age=2"); res.How != Led {
			t.Error(res)
		}
		time.Sleep(6 * time.Second)
		if _, res := s.ask("GET", "/", "Cache-Control", "max-age=60"); res.How != Led {
			t.Errorf("%s: a stale answer for a request with max-age", res)
		}
		time.Sleep(6 * time.Second)
		if _, res := s.ask("GET", "/", "Cache-Control", "min-fresh=1"); res.How != Led {
			t.Errorf("%s: a stale answer for a request with min-fresh", res)
		}
	})
}

// What a middleware around has set stays.
func TestHeadersOfMiddlewareAround(t *testing.T) {
	s := newSite(t, hour, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Accept-Encoding")
		w.Header().Set("Cache-Status", "origin; hit")
	})
	defer closeCache(t, s.Cache)
	for range 3 {
		w := httptest.NewRecorder()
		w.Header().Set("Vary", "Origin")
		w.Header().Set("X-Around", "1")
		s.serve(w, newRequest("GET", "/"))
		h := w.Header()
		h.Add("Date", "x") // does not change the answer
		if fmt.Sprint(h["Vary"], h["X-Around"]) != "[Origin Accept-Encoding] [1]" || len(h["Cache-Status"]) != 2 || len(h["Date"]) != 2 {
			t.Error(h)
		}
	}
}

// Without coalesce the cache is filled by one, and the others go alone meanwhile.
func TestCacheWithoutCoalesce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, rules.OnHot{Cache: time.Hour}, slow(time.Second))
		defer closeCache(t, s.Cache)
		results, wait := s.group(10)
		wait()
		wantTally(t, results, map[string]int{"led": 1, "alone: under-way": 9})
		if _, res := s.ask("GET", "/"); res.How != Hit {
			t.Error(res)
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, hour, slow(time.Second))
		results, wait := s.group(3)
		synctest.Wait()
		closeCache(t, s.Cache)
		wait()
		wantTally(t, results, map[string]int{"alone: closed": 3})
		if _, res := s.ask("GET", "/"); res.String() != "alone: closed" {
			t.Error(res)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		s := newSite(t, hour, func(w http.ResponseWriter, r *http.Request) { <-hang })
		go s.get("/")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Close(ctx); err == nil {
			t.Error("Close does not wait for a handler")
		}
		close(hang)
	})
}

func TestTooManyLeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, hour, slow(time.Second))
		s.Cache = newCache(t, Config{Leaders: 2})
		defer closeCache(t, s.Cache)
		for i := range 2 {
			go s.get(fmt.Sprint("/", i))
		}
		synctest.Wait()
		if _, res := s.ask("GET", "/2"); res.String() != "alone: busy" {
			t.Error(res)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if _, res := s.ask("GET", "/3"); res.How != Led {
			t.Error(res)
		}
	})
}

func TestConfigErrors(t *testing.T) {
	for _, c := range []Config{{Total: 1}, {Total: 16 << 30}, {Deadline: -1}, {Leaders: -1}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v", c)
		}
	}
}
