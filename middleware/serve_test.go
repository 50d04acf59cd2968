package middleware

import (
	"io"
	"net/http"
	"testing"

	"github.com/hotparam/hotparam/rules"
)

func serveRule(tb testing.TB, a *rules.Response) rules.Rule {
	tb.Helper()
	r := limitRule(tb, "r", "*", byNames("q"), 1, 1)
	r.Limit.Mode, r.Limit.Serve = rules.ModeServe, a
	return r
}

// Over the limit the rule's answer, or the program's own, replaces the handler's. For a request
// that is not HTTP the decision says so.
func TestServe(t *testing.T) {
	answer := &rules.Response{Status: 203, Type: "application/json", Body: `{"from":"the cache"}`}
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{serveRule(t, answer)}})
	h := f.Handler(ok)
	if w := serve(h, "GET", "/s?q=1"); w.Body.String() != "served" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	w := serve(h, "GET", "/s?q=1")
	if w.Code != 203 || w.Body.String() != answer.Body || w.Header().Get("Content-Type") != answer.Type || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%d %s %v", w.Code, w.Body, w.Header())
	}
	if w := serve(h, "GET", "/s?q=2"); w.Body.String() != "served" {
		t.Errorf("another key: %d %s", w.Code, w.Body)
	}
	d := f.Check(get("", "/s", "q=1"))
	if d.Allowed || d.Reason != rules.ReasonServed || d.Rule != "r" || d.RetryAfter == 0 {
		t.Errorf("%+v", d)
	}
	if s := f.Stats(); s.Served != 2 || s.Limited != 2 {
		t.Errorf("%+v", s)
	}

	own := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "a guess for "+r.URL.RawQuery) })
	for name, rule := range map[string]rules.Rule{"over the rule's": serveRule(t, answer), "alone": serveRule(t, nil)} {
		h := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}}, WithServe("r", own)).Handler(ok)
		serve(h, "GET", "/s?q=1")
		if w := serve(h, "GET", "/s?q=1"); w.Code != 200 || w.Body.String() != "a guess for q=1" {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	h = newFixture(t, rules.Rules{Rules: []rules.Rule{serveRule(t, nil)}}).Handler(ok)
	serve(h, "GET", "/s?q=1")
	if w := serve(h, "GET", "/s?q=1"); w.Code != 429 || w.Header().Get("Retry-After") != "3600" {
		t.Errorf("with no answer at all: %d %s", w.Code, w.Body)
	}
}

// Values with an exception get the exception's answer, and blocked values get none. A request that
// gets no permit is answered as well.
func TestServeByTerms(t *testing.T) {
	rule := serveRule(t, &rules.Response{Status: 200, Body: "rule"})
	vip := serveRule(t, &rules.Response{Status: 200, Body: "exception"})
	rule.Except = []rules.Exception{{Values: is("q", "vip"), Limit: vip.Limit}, {Values: is("q", "bad"), Action: rules.Block}}
	h := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}}).Handler(ok)
	for _, q := range []string{"vip", "1"} {
		serve(h, "GET", "/s?q="+q)
	}
	for q, want := range map[string]string{"vip": "exception", "1": "rule"} {
		if w := serve(h, "GET", "/s?q="+q); w.Body.String() != want {
			t.Errorf("%s: %s", q, w.Body)
		}
	}
	if w := serve(h, "GET", "/s?q=bad"); w.Code != http.StatusForbidden {
		t.Errorf("%d", w.Code)
	}

	busy := busyRule(t, "r", rules.By{}, 1, 0)
	busy.Limit.Mode, busy.Limit.Serve = rules.ModeServe, &rules.Response{Status: 200, Body: "later"}
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{busy}})
	ticket := letIn(t, f, search)
	if w := serve(f.Handler(ok), "GET", "/s"); w.Body.String() != "later" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	ticket.End(Cost{})
}

// A refusal for lack of capacity is reported as a failure of the service, not of the client. If no
// retry can pass, no time for one is proposed.
func TestRefuseStatus(t *testing.T) {
	for _, c := range []struct {
		d     rules.Decision
		code  int
		retry string
		kind  string
	}{
		{rules.Decision{Reason: rules.ReasonLimited, Rule: "r", RetryAfter: 1}, 429, "1", quotaType},
		{rules.Decision{Reason: rules.ReasonLimited, Rule: "r"}, 429, "", quotaType},
		{rules.Decision{Reason: rules.ReasonLocked, Rule: "r", RetryAfter: 90e9}, 429, "90", quotaType},
		{rules.Decision{Reason: rules.ReasonBusy, Rule: "r"}, 503, "1", capacityType},
		{rules.Decision{Reason: rules.ReasonBusy, Rule: "r", RetryAfter: 1_000_000_001}, 503, "2", capacityType},
		{rules.Decision{Reason: rules.ReasonUnavailable, Rule: "r", RetryAfter: 5e9}, 503, "5", capacityType},
		{rules.Decision{Reason: rules.ReasonBlocked, Rule: "r", RetryAfter: 5e9}, 403, "", "about:blank"},
		{rules.Decision{Reason: rules.ReasonLimited, Rule: "r", RetryAfter: 1<<63 - 1}, 429, "9223372037", quotaType},
	} {
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { Refuse(w, r, c.d) })
		w := serve(h, "GET", "/s")
		if w.Code != c.code || w.Header().Get("Retry-After") != c.retry || !contains(w.Body.String(), `"type":"`+c.kind+`"`) {
			t.Errorf("%+v: %d, Retry-After %q, %s", c.d, w.Code, w.Header().Get("Retry-After"), w.Body)
		}
	}
}
