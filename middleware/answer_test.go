package middleware

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// answering returns a handler that works like a framework's adapter: it knows about the answer
// only what the decision contains.
func answering(g *Guard, seen *[]rules.Decision) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		made := 0
		d, ticket := g.Begin(Request{
			Context: r.Context(), Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Pattern: r.Pattern,
			MakeHTTP: func() *http.Request {
				if made++; made > 1 {
					panic("made twice")
				}
				return r
			},
		})
		*seen = append(*seen, d)
		a := d.Answer()
		maps.Copy(w.Header(), a.Header)
		if a.Status == 0 {
			ok.ServeHTTP(w, r)
			ticket.End(Cost{})
			return
		}
		if r.Method == http.MethodHead { // as servers do
			if len(a.Body) > 0 {
				w.Header().Set("Content-Length", strconv.Itoa(len(a.Body)))
			}
			a.Body = nil
		}
		w.WriteHeader(a.Status)
		_, _ = w.Write(a.Body)
	})
}

type answerCase struct {
	reason   rules.Reason // reason of the last decision
	rules    rules.Rules
	opts     []Option
	before   func(*testing.T, *fixture)
	requests int // 0: one
	method   string
	target   string // "": /s?q=1
	status   int
}

// answerCases returns a case for each kind of decision.
func answerCases(t *testing.T) map[string]answerCase {
	of := func(ruleset ...rules.Rule) rules.Rules { return rules.Rules{Rules: ruleset} }
	limited := limitRule(t, "r", "*", byNames("q"), 3600, 1)
	change := func(f func(*rules.Limit)) rules.Rules {
		r := limited
		l := *r.Limit
		f(&l)
		r.Limit = &l
		return of(r)
	}
	served := change(func(l *rules.Limit) {
		l.Mode, l.Serve = rules.ModeServe, &rules.Response{Status: 203, Type: "application/json", Body: `{"from":"the file"}`}
	})
	untyped := change(func(l *rules.Limit) {
		l.Mode, l.Serve = rules.ModeServe, &rules.Response{Status: 200, Body: "<html>"}
	})
	empty := change(func(l *rules.Limit) {
		l.Mode, l.Serve = rules.ModeServe, &rules.Response{Status: 204}
	})
	bare := change(func(l *rules.Limit) { l.Mode = rules.ModeServe })
	blocking := limited
	blocking.Except = []rules.Exception{{Values: is("q", "1"), Action: rules.Block}}
	own := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusAccepted)
		w.Header().Set("X-Late", "is not sent")
		_, _ = io.WriteString(w, "a guess for "+r.URL.RawQuery)
	})
	quiet := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Del("Ratelimit") })
	limits := WithLimited(func(w http.ResponseWriter, r *http.Request, d rules.Decision) {
		a := d.Answer() // of the guard
		w.Header()["X-Retry"] = a.Header["Retry-After"]
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, d.Rule+" "+r.URL.Path)
	})
	matcher := WithMatcher("r", func(r *http.Request) (string, bool) { return r.Host, r.URL.Query().Has("free") })
	away := func(to rules.OutagePolicy) (rules.Rules, []Option) {
		back := newShared(t)
		back.setErr(errors.New("no route to host"))
		return of(exactly(limited, to)), []Option{WithBackend(back)}
	}
	closed, gone := away(rules.OutageClosed)
	open, passes := away(rules.OutageOpen)
	plan := limitRule(t, "r", "*", byNames("header:x-plan", "cookie:c", "addr:ip", "ctx:user"), 3600, 1)
	hot := hotRule(t, "r", "*", byNames("q"), 3600, 1)
	heat := func(t *testing.T, f *fixture) { f.heat(t, "r GET /s?q=1", "r HEAD /s?q=1") }
	shadow := change(func(l *rules.Limit) { l.Mode = rules.ModeShadow })
	locked := change(func(l *rules.Limit) { l.Penalty = time.Minute })
	return map[string]answerCase{
		"no rule":                {reason: rules.ReasonNone, rules: of(limitRule(t, "r", "GET /other", rules.By{}, 1, 1)), status: 200},
		"within":                 {reason: rules.ReasonWithin, rules: of(limited), status: 200},
		"limited":                {reason: rules.ReasonLimited, rules: of(limited), requests: 4, status: 429},
		"limited, HEAD":          {reason: rules.ReasonLimited, rules: of(limited), requests: 2, method: "HEAD", status: 429},
		"hot, within":            {reason: rules.ReasonWithin, rules: of(hot), before: heat, status: 200},
		"hot, limited":           {reason: rules.ReasonLimited, rules: of(hot), before: heat, requests: 4, status: 429},
		"locked":                 {reason: rules.ReasonLocked, rules: locked, requests: 3, status: 429},
		"blocked":                {reason: rules.ReasonBlocked, rules: of(blocking), status: 403},
		"no match":               {reason: rules.ReasonNoMatch, rules: rules.Rules{DenyNoMatch: true, Rules: of(limitRule(t, "r", "GET /other", rules.By{}, 1, 1)).Rules}, status: 403},
		"ignored":                {reason: rules.ReasonIgnored, rules: of(limited, ignoreRule(t, "i", "*")), requests: 2, status: 200},
		"shadow":                 {reason: rules.ReasonShadow, rules: shadow, requests: 2, status: 200},
		"WithShadow":             {reason: rules.ReasonShadow, rules: of(limited), opts: []Option{WithShadow()}, requests: 2, status: 200},
		"away":                   {reason: rules.ReasonUnavailable, rules: closed, opts: gone, requests: 2, status: 503},
		"away, open":             {reason: rules.ReasonOpen, rules: open, opts: passes, requests: 2, status: 200},
		"panic":                  {reason: rules.ReasonOpen, rules: of(limited), opts: []Option{WithClock(func() time.Duration { panic("clock") })}, status: 200},
		"served":                 {reason: rules.ReasonServed, rules: served, requests: 2, status: 203},
		"served, HEAD":           {reason: rules.ReasonServed, rules: served, requests: 2, method: "HEAD", status: 203},
		"served, untyped":        {reason: rules.ReasonServed, rules: untyped, requests: 2, status: 200},
		"served, empty":          {reason: rules.ReasonServed, rules: empty, requests: 2, status: 204},
		"served by nobody":       {reason: rules.ReasonServed, rules: bare, requests: 2, status: 429},
		"WithServe":              {reason: rules.ReasonServed, rules: bare, opts: []Option{WithServe("r", own)}, requests: 2, status: 202},
		"WithServe, HEAD":        {reason: rules.ReasonServed, rules: bare, opts: []Option{WithServe("r", own)}, requests: 2, method: "HEAD", status: 202},
		"WithServe over served":  {reason: rules.ReasonServed, rules: served, opts: []Option{WithServe("r", own)}, requests: 2, status: 202},
		"WithServe, nothing":     {reason: rules.ReasonServed, rules: bare, opts: []Option{WithServe("r", quiet)}, requests: 2, status: 200},
		"WithLimited":            {reason: rules.ReasonLimited, rules: of(limited), opts: []Option{limits}, requests: 3, status: 503},
		"WithLimited, no match":  {reason: rules.ReasonNoMatch, rules: rules.Rules{DenyNoMatch: true, Rules: of(limitRule(t, "r", "GET /other", rules.By{}, 1, 1)).Rules}, opts: []Option{limits}, status: 503},
		"WithLimited and served": {reason: rules.ReasonServed, rules: served, opts: []Option{limits}, requests: 2, status: 203},
		"Refuse":                 {reason: rules.ReasonLimited, rules: of(limited), opts: []Option{WithLimited(Refuse)}, requests: 2, status: 429},
		"waited":                 {reason: rules.ReasonWithin, rules: of(waitRule(t, "r", rules.By{}, tenASecond, 1, time.Second)), requests: 2, status: 200},
		"waited too long":        {reason: rules.ReasonLimited, rules: of(waitRule(t, "r", rules.By{}, tenASecond, 1, time.Millisecond)), requests: 2, status: 429},
		"busy": {reason: rules.ReasonBusy, rules: of(busyRule(t, "r", rules.By{}, 1, 0)), requests: 3, status: 503, before: func(t *testing.T, f *fixture) {
			ticket := letIn(t, f, search)
			t.Cleanup(func() { ticket.End(Cost{}) })
		}},
		"matched":       {reason: rules.ReasonLimited, rules: of(limited), opts: []Option{matcher}, requests: 2, status: 429},
		"matcher frees": {reason: rules.ReasonIgnored, rules: of(limited), opts: []Option{matcher}, target: "/s?q=1&free", requests: 2, status: 200},
		"sources":       {reason: rules.ReasonLimited, rules: of(plan), opts: []Option{WithParam("user", func(context.Context) string { return "ann" })}, requests: 2, status: 429},
		"skipped":       {reason: rules.ReasonNone, rules: of(limited), opts: []Option{WithSkip(func(r *http.Request) bool { return r.Host == "example.com" })}, requests: 2, status: 200},
	}
}

// answered is a response as a client receives it.
type answered struct {
	status int
	header http.Header
	body   string
}

func ask(t *testing.T, server *httptest.Server, method, target string) answered {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, server.URL+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "example.com"
	r.Header.Set("X-Plan", "free")
	r.Header.Set("Cookie", "c=1")
	got, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Date", "X-Ratelimit-Reset"} { // which are times of day
		if got.Header.Get(name) != "" {
			got.Header.Set(name, "set")
		}
	}
	return answered{got.StatusCode, got.Header, string(body)}
}

// The answer of Begin's decision is what Handler sends: status, headers and body, byte for byte,
// for each kind of decision.
func TestBeginAnswersAsHandlerDoes(t *testing.T) {
	for name, c := range answerCases(t) {
		t.Run(name, func(t *testing.T) {
			opts := append([]Option{WithHeaders(RateLimitHeaders, LegacyHeaders)}, c.opts...)
			guards := [2]*fixture{newFixture(t, c.rules, opts...), newFixture(t, c.rules, opts...)}
			var seen []rules.Decision
			var servers [2]*httptest.Server
			for i, h := range []http.Handler{guards[0].Handler(ok), answering(guards[1].Guard, &seen)} {
				if c.before != nil {
					c.before(t, guards[i])
				}
				servers[i] = httptest.NewServer(h)
				defer servers[i].Close()
				defer servers[i].Client().CloseIdleConnections()
			}
			method, target := cmp.Or(c.method, "GET"), cmp.Or(c.target, "/s?q=1")
			var got answered
			for range max(1, c.requests) {
				got = ask(t, servers[0], method, target)
				if begun := ask(t, servers[1], method, target); !reflect.DeepEqual(begun, got) {
					t.Errorf("Handler: %+v\nBegin:   %+v", got, begun)
				}
			}
			d := seen[len(seen)-1]
			if d.Reason != c.reason || got.status != c.status {
				t.Errorf("%v, status %d; want %v, %d", d.Reason, got.status, c.reason, c.status)
			}
			if a := d.Answer(); d.Allowed != (a.Status == 0) {
				t.Errorf("%+v has the answer %+v", d, a)
			}
			if a, b := guards[0].Stats(), guards[1].Stats(); a != b {
				t.Errorf("Handler: %+v\nBegin:   %+v", a, b)
			}
		})
	}
}

// A handler's response that is too long to keep is dropped. The handler for a request that is not
// of net/http gets everything that the guard knows about it.
func TestServeRecorded(t *testing.T) {
	rule := serveRule(t, nil)
	long := func(n int) (a rules.Answer, err error) {
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}}, WithHeaders(), WithServe("r", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for range n {
				if _, err = w.Write(make([]byte, 1<<10)); err != nil {
					return
				}
			}
		})))
		f.Check(search)
		return f.Check(search).Answer(), err
	}
	if a, err := long(maxRecorded >> 10); a.Status != 200 || a.Header["Ratelimit"] == nil || len(a.Body) != maxRecorded || err != nil {
		t.Errorf("%d, %d bytes, %v", a.Status, len(a.Body), err)
	}
	if a, err := long(maxRecorded>>10 + 1); a.Status != 429 || a.Header["Retry-After"] == nil || err == nil {
		t.Errorf("%d %v, %v", a.Status, a.Header, err)
	}

	type key struct{}
	var got *http.Request
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}}, WithServe("r", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.WriteHeader(http.StatusNoContent)
		if _, err := io.WriteString(w, "x"); !errors.Is(err, http.ErrBodyNotAllowed) {
			t.Errorf("a body of 204: %v", err)
		}
	})))
	in := Request{Context: context.WithValue(t.Context(), key{}, 7), Method: "PUT", Path: "/a%2Fb", Query: "q=1"}
	f.Check(in)
	if a := f.Check(in).Answer(); a.Status != 204 || a.Body != nil {
		t.Errorf("%+v", a)
	}
	if got.Method != "PUT" || got.URL.String() != "/a%2Fb?q=1" || got.Context().Value(key{}) != 7 || got.Header == nil || got.Body == nil {
		t.Errorf("%+v", got)
	}
}
