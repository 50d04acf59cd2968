package onhot

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

// A story is two users' requests for a few targets, with the answers of the handler and
// invalidations. The handler writes all that it sees of a request into its answer.
type story struct {
	policy  rules.OnHot
	answers map[string][]told // by target; the calls take them in turn
	asks    []asked
	changes []change
}

// told is an answer with what is known of it by its making, not by this package's code.
type told struct {
	lines    []string // of its header
	status   int
	delay    time.Duration // before the header, and again before the end
	ending   string        // "", "panic", "short", "trailer" or "flush"
	shared   bool          // it is for sharing, if its variants are in the policy
	varies   string        // a header it varies by
	lifetime time.Duration // stated, or zero
	strict   bool          // no stale use
}

type asked struct {
	at, leaves time.Duration // leaves is zero for a client that stays
	user       string
	method     string
	target     string
	headers    []string
	shared     bool // it may share an answer
	cookie     bool // it may if the policy names cookies
}

type change struct {
	at     time.Duration
	target string // or empty for all
}

// call is a run of the handler.
type call struct {
	request string // id of the one request that it is for, or empty for a leader
	target  string
	view    string // the variants that it saw
	version int
	end     time.Time
	told    told
}

func drawStory(t *rapid.T) story {
	draw := func(what string, values ...string) string { return rapid.SampledFrom(values).Draw(t, what) }
	chance := func(what string, of int) bool { return rapid.IntRange(1, of).Draw(t, what) == 1 }
	ms := func(what string, values ...int) time.Duration {
		return time.Duration(rapid.SampledFrom(values).Draw(t, what)) * time.Millisecond
	}
	s := story{policy: rules.OnHot{
		Coalesce: !chance("no coalesce", 5), Cache: ms("cache", 0, 500, 500, 500, 2500), Wait: ms("wait", 50, 300, 2000), Max: 4 << 10, Status: []int{200, 404},
	}, answers: make(map[string][]told)}
	if s.policy.Cache > 0 {
		s.policy.Stale = ms("stale", 0, 1000, 1000)
	} else {
		s.policy.Coalesce = true
	}
	for _, vary := range []string{"header:accept-language", "header:x-tenant", "cookie:lang"} {
		if rapid.Bool().Draw(t, vary) {
			s.policy.Vary = append(s.policy.Vary, vary)
		}
	}
	targets := []string{"/a", "/a?q=1", "/b"}
	for _, target := range targets {
		for range rapid.IntRange(1, 4).Draw(t, "answers") {
			a := told{status: 200, shared: true, delay: ms("delay", 0, 0, 20, 200)}
			if chance("status", 8) {
				a.status = rapid.SampledFrom([]int{404, 206, 302, 401, 500, 503}).Draw(t, "status")
				a.shared = a.status == 404
			}
			switch trap := draw("trap", "", "", "", "", "", "", "", "", "", "", "", "cookie", "lowercase", "control", "vary", "range", "lifetime", "over", "stream", "encoding"); trap {
			case "cookie":
				a.lines, a.shared = append(a.lines, "Set-Cookie: sid=minted"), false
			case "lowercase":
				a.lines, a.shared = append(a.lines, "set-cookie: sid=minted"), false
			case "control":
				a.lines, a.shared = append(a.lines, "Cache-Control: "+draw("control", "private", "no-store", "no-cache", "max-age=60, PRIVATE", `private="x"`, "max-age=0", "x=\"")), false
			case "vary":
				a.varies = draw("varies", "Accept-Language", "X-Tenant", "Cookie", "X-Api-Key", "*")
				a.lines = append(a.lines, "Vary: Accept-Encoding, "+a.varies)
			case "range":
				a.lines, a.shared = append(a.lines, "Content-Range: bytes 0-1/2"), false
			case "lifetime":
				a.lifetime = time.Second
				a.lines = append(a.lines, "Cache-Control: "+draw("lifetime", "max-age=1", "max-age=60, s-maxage=1", "max-age=1, must-revalidate"))
				a.strict = a.lines[len(a.lines)-1] != "Cache-Control: max-age=1"
			case "over":
				a.lines, a.shared = append(a.lines, "X-Long: "+strings.Repeat("x", 4<<10)), false
			case "stream":
				a.lines, a.shared = append(a.lines, "Content-Type: text/event-stream"), false
			case "encoding":
				a.lines = append(a.lines, "Content-Encoding: br", `Etag: "1"`)
			}
			switch a.ending = draw("ending", "", "", "", "", "", "", "flush", "flush", "panic", "short", "trailer"); a.ending {
			case "panic", "short", "trailer":
				a.shared = false
			}
			s.answers[target] = append(s.answers[target], a)
		}
	}
	for range rapid.IntRange(5, 60).Draw(t, "requests") {
		a := asked{
			at: ms("at", 0, 0, 1, 5, 10, 50, 100, 150, 300, 350, 450, 600, 700, 1000, 1300, 1500, 2000, 3000, 3500, 5000), user: draw("user", "ann", "bob"), method: draw("method", "GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "POST"),
			target: draw("target", "/a", "/a", "/a", "/a", "/a?q=1", "/b"), shared: true,
		}
		a.shared = a.method != "POST"
		if chance("leaves", 8) {
			a.leaves = ms("leaves", 1, 10, 150)
		}
		for _, name := range []string{"X-Api-Key", "X-Forwarded-Host", "X-Forwarded-For", "User-Agent", "Origin", "Forwarded"} {
			if rapid.Bool().Draw(t, name) {
				a.headers = append(a.headers, name, "secret-"+a.user)
			}
		}
		for _, name := range []string{"Accept-Language", "X-Tenant"} {
			if v := draw(name, "", "", "", "", "", "", "", "en", "de"); v != "" {
				a.headers = append(a.headers, name, v)
			}
		}
		if v := draw("encoding", "", "", "", "", "", "", "gzip", "br, gzip", "gzip;q=0.5, br"); v != "" {
			a.headers = append(a.headers, "Accept-Encoding", v)
		}
		if cookie := draw("cookie", "", "", "", "", "", "", "sid=secret-"+a.user, "sid=secret-"+a.user+"; lang=en", "lang=de"); cookie != "" {
			a.headers, a.cookie = append(a.headers, "Cookie", cookie), true
		}
		switch identity := draw("identity", "", "", "", "", "", "", "", "", "", "", "Authorization", "Proxy-Authorization", "Range", "Upgrade", "If-Match", "Cache-Control", "If-None-Match"); identity {
		case "":
		case "If-None-Match":
			a.headers = append(a.headers, identity, `"1"`)
		case "Cache-Control":
			a.headers, a.shared = append(a.headers, identity, draw("directive", "no-cache", "no-store", "max-age=1, no-cache")), false
		default:
			a.headers, a.shared = append(a.headers, identity, "secret-"+a.user), false
		}
		s.asks = append(s.asks, a)
	}
	for range rapid.IntRange(0, 2).Draw(t, "changes") {
		s.changes = append(s.changes, change{ms("changed", 1, 11, 110, 700, 2000), draw("changed target", "", "/a", "/b")})
	}
	return s
}

// view returns the variants of a request by the policy, in words of this test. Cookies are compared
// as the values of those named lang.
func (s *story) view(h http.Header) string {
	var b strings.Builder
	for _, vary := range s.policy.Vary {
		source, name, _ := strings.Cut(vary, ":")
		if source == "header" {
			fmt.Fprintf(&b, "%q", h.Values(name))
			continue
		}
		r := http.Request{Header: h}
		for _, c := range r.CookiesNamed(name) {
			fmt.Fprintf(&b, "%q", c.Value)
		}
	}
	fmt.Fprint(&b, strings.Contains(h.Get("Accept-Encoding"), "gzip"), strings.Contains(h.Get("Accept-Encoding"), "br"))
	return b.String()
}

// run plays the story and returns what is wrong, and how its requests were answered.
func (s *story) run(t *testing.T) (wrong []string, results []Result) {
	var mu sync.Mutex
	calls := make(map[string]*call)
	turns := make(map[string]int)
	versions := make(map[string]int)    // invalidations that have begun, by target
	invalidated := make(map[string]int) // and those that have ended
	report := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		wrong = append(wrong, fmt.Sprintf(format, args...))
	}
	handler := func(w http.ResponseWriter, r *http.Request) {
		target := r.URL.RequestURI()
		request, _ := r.Context().Value(userKey{}).(string)
		mu.Lock()
		c := &call{request: request, target: target, view: s.view(r.Header), version: versions[target], told: s.answers[target][turns[target]%len(s.answers[target])]}
		turns[target]++
		id := fmt.Sprint("call-", len(calls), "-")
		calls[id] = c
		mu.Unlock()
		defer func() { mu.Lock(); c.end = time.Now(); mu.Unlock() }()
		time.Sleep(c.told.delay)
		for _, line := range c.told.lines {
			name, value, _ := strings.Cut(line, ": ")
			w.Header()[name] = append(w.Header()[name], value)
		}
		w.Header().Set("X-Call", id)
		body := id + seen(r) + "\nend"
		if c.told.ending == "short" {
			w.Header().Set("Content-Length", fmt.Sprint(len(body)+1))
		}
		w.WriteHeader(c.told.status)
		_, _ = w.Write([]byte(body[:len(body)/2]))
		if c.told.ending == "flush" {
			_ = http.NewResponseController(w).Flush()
		}
		time.Sleep(c.told.delay)
		if c.told.ending == "panic" {
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write([]byte(body[len(body)/2:]))
		if c.told.ending == "trailer" {
			w.Header().Set("Trailer:X-Sum", "1")
		}
	}
	policy := NewPolicy(s.policy)
	cache := newCache(t, Config{Deadline: 3 * time.Second})
	defer closeCache(t, cache)
	start := time.Now()
	var wg sync.WaitGroup
	for i, a := range s.asks {
		wg.Go(func() {
			time.Sleep(a.at)
			id := fmt.Sprint("secret-", a.user, "-", i)
			ctx, cancel := context.WithCancel(context.WithValue(context.Background(), userKey{}, id))
			defer cancel()
			if a.leaves > 0 {
				defer time.AfterFunc(a.leaves, cancel).Stop()
			}
			r := newRequest(a.method, a.target, a.headers...).WithContext(ctx)
			r.RemoteAddr = "secret-" + a.user + ":1"
			mu.Lock()
			version := invalidated[a.target]
			mu.Unlock()
			w := httptest.NewRecorder()
			var res Result
			func() {
				defer func() { _ = recover() }() // of a request that goes alone
				res = cache.Serve(w, r, policy, "hot key", func(bool) (http.Handler, bool) { return http.HandlerFunc(handler), true })
			}()
			mu.Lock()
			results = append(results, res)
			c := calls[w.Header().Get("X-Call")]
			mu.Unlock()
			where := fmt.Sprintf("%v: request %d %+v (%s) receives %d %v %q", time.Since(start), i, a, res, w.Code, w.Header(), w.Body)
			switch {
			case c == nil:
				if res.How != Gone || a.leaves == 0 || time.Since(start) < a.at+a.leaves {
					report("no answer: %s", where)
				}
			case c.request == id: // its own run
			case c.request != "":
				report("another request's answer, of %s: %s", c.request, where)
			default:
				s.judge(a, c, w, version, where, report)
			}
			other := map[string]string{"ann": "secret-bob", "bob": "secret-ann"}[a.user]
			if text := fmt.Sprint(w.Header(), w.Body); strings.Contains(text, other) {
				report("a secret of the other user: %s", where)
			}
		})
	}
	for _, c := range s.changes {
		wg.Go(func() {
			time.Sleep(c.at)
			count := func(invalidations map[string]int) {
				mu.Lock()
				defer mu.Unlock()
				for target := range s.answers {
					if c.target == "" || c.target == target {
						invalidations[target]++
					}
				}
			}
			count(versions)
			if c.target == "" {
				cache.InvalidateTag(TagID("hot key"))
			} else {
				cache.InvalidateTarget(TargetID("example.com", c.target, ""))
			}
			count(invalidated)
		})
	}
	wg.Wait()
	return wrong, results
}

// judge reports an answer of a leader's call that must not reach the request.
func (s *story) judge(a asked, c *call, w *httptest.ResponseRecorder, version int, where string, report func(string, ...any)) {
	names := slices.Clone(s.policy.Vary)
	cookies := slices.Contains(names, "cookie:lang")
	answer := c.told
	known := answer.varies == "" || answer.varies == "Cookie" && cookies || slices.Contains(names, "header:"+strings.ToLower(answer.varies))
	if !answer.shared || !known {
		report("an answer that is not for sharing, %+v: %s", answer, where)
	}
	if !a.shared || a.cookie && !cookies {
		report("a request that shares no answer: %s", where)
	}
	if c.target != a.target {
		report("another target's answer, of %s: %s", c.target, where)
	}
	if view := s.view(newRequest("GET", "/", a.headers...).Header); view != c.view {
		report("another variant's answer, %s for %s: %s", c.view, view, where)
	}
	if c.version < version {
		report("an answer from before an invalidation: %s", where)
	}
	fresh, stale := s.policy.Cache, s.policy.Stale
	if answer.lifetime > 0 {
		fresh = min(fresh, answer.lifetime)
		stale = min(stale, answer.lifetime-fresh)
	}
	if answer.strict {
		stale = 0
	}
	if age := time.Since(c.end); age > fresh+stale {
		report("an answer after %v, of %v and %v: %s", age, fresh, stale, where)
	}
	body := w.Body.String()
	switch {
	case w.Code == http.StatusNotModified:
		if body != "" || !slices.Contains(a.headers, "If-None-Match") {
			report("304: %s", where)
		}
	case w.Code != answer.status:
		report("status, want %d: %s", answer.status, where)
	case a.method == http.MethodHead:
		if body != "" {
			report("a body for HEAD: %s", where)
		}
	case !strings.HasSuffix(body, "end"):
		report("a part of a body: %s", where)
	}
	if strings.Contains(fmt.Sprint(w.Header(), body), "secret-") {
		report("a secret in a shared answer: %s", where)
	}
}

// Whatever two users request, no byte of an answer that is private to one reaches the other, and
// each receives an answer.
func TestTwoUsers(t *testing.T) {
	seen := make(map[string]int)
	rapid.Check(t, func(rt *rapid.T) {
		for range 4 { // more stories than rapid draws by default
			s := drawStory(rt)
			var wrong []string
			var results []Result
			synctest.Test(t, func(t *testing.T) { wrong, results = s.run(t) })
			if len(wrong) > 0 {
				rt.Fatalf("policy %+v, changes %+v\n%s", s.policy, s.changes, strings.Join(wrong, "\n"))
			}
			for _, res := range results {
				seen[res.String()]++
			}
		}
	})
	t.Log(seen)
	for _, how := range []string{"hit", "stale", "joined", "led", "gone", "alone: set-cookie", "alone: vary", "alone: panic", "alone: truncated", "alone: authorization", "alone: cookie", "alone: over"} {
		if seen[how] == 0 {
			t.Errorf("no request is answered %q, of %v", how, slices.Sorted(maps.Keys(seen)))
		}
	}
}
