package middleware

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

func partOf(t *testing.T, q string) Part {
	return Part{Request: Request{Context: t.Context(), Pattern: "jobs"}, Params: []rules.Param{{Name: "q", Value: q}}}
}

// Parts pass together or not at all: a part that is refused along with another takes no tokens,
// holds no permit and costs nothing.
func TestPartsPassTogetherOrNotAtAll(t *testing.T) {
	permits := busyRule(t, "permits", byNames("q"), 2, 0)
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{limitRule(t, "tokens", "jobs", byNames("q"), 2, 2), permits}})
	a, b := partOf(t, "a"), partOf(t, "b")

	decisions, tickets := f.BeginAll([]Part{a, a})
	if !decisions[0].Allowed || !decisions[1].Allowed || tickets[0] == nil || tickets[1] == nil {
		t.Fatalf("%+v, %v", decisions, tickets)
	}
	for range 3 { // which would leave nothing for b if it took anything
		decisions, refused := f.BeginAll([]Part{b, a})
		if !decisions[0].Allowed || decisions[1].Allowed || refused[0] != nil || refused[1] != nil {
			t.Fatalf("%+v, %v; want the second alone refused, and no tickets", decisions, refused)
		}
		if decisions[1].RetryAfter <= 0 {
			t.Errorf("%+v: want a time to retry", decisions[1])
		}
	}
	decisions, held := f.BeginAll([]Part{b, b})
	if !decisions[0].Allowed || !decisions[1].Allowed {
		t.Fatalf("%+v: parts that were given back have taken something", decisions)
	}
	for _, ticket := range append(tickets, held...) {
		ticket.End(Cost{})
	}
}

// All parts ask the backend in one call, in which they take together or not at all. A part that
// peeks takes nothing there.
func TestPartsAskTheBackendTogether(t *testing.T) {
	back := newShared(t)
	back.together = true
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{
		exactly(limitRule(t, "all", "jobs", rules.By{}, 1, 10), ""),
		exactly(limitRule(t, "key", "jobs", byNames("q"), 1, 2), ""),
	}}, WithBackend(back))
	a, b, look := partOf(t, "a"), partOf(t, "b"), partOf(t, "c")
	look.Peek = true
	all := "all * take"
	if decisions, _ := f.BeginAll([]Part{a, look, a}); !decisions[0].Allowed || !decisions[1].Allowed || !decisions[2].Allowed {
		t.Fatalf("%+v", decisions)
	}
	wantCalls(t, back, []string{all, "key jobs?q=a take", "all * peek", "key jobs?q=c peek", all, "key jobs?q=a take"})
	decisions, _ := f.BeginAll([]Part{b, a})
	if !decisions[0].Allowed || decisions[1].Allowed || decisions[1].Rule != "key" {
		t.Fatalf("%+v, want the second alone refused", decisions)
	}
	wantCalls(t, back, []string{all, "key jobs?q=b take", all, "key jobs?q=a take"}) // and no return
	if decisions, _ := f.BeginAll([]Part{b, b, b}); !decisions[0].Allowed || decisions[2].Allowed {
		t.Errorf("%+v, want the third of two refused", decisions)
	}
	if decisions, _ := f.BeginAll([]Part{b, b}); !decisions[0].Allowed || !decisions[1].Allowed || decisions[1].Rule != "key" || decisions[1].Remaining != 0 {
		t.Errorf("%+v: parts that were refused have taken something", decisions)
	}
}

// If a part gets no permit, the parts before it return theirs.
func TestPartsGiveBackPermits(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{busyRule(t, "permits", byNames("q"), 1, 0)}})
	a, b := partOf(t, "a"), partOf(t, "b")
	_, tickets := f.BeginAll([]Part{a})
	if decisions, _ := f.BeginAll([]Part{b, a}); !decisions[0].Allowed || decisions[1].Reason != rules.ReasonBusy {
		t.Fatalf("%+v, want the second to be refused as busy", decisions)
	}
	decisions, more := f.BeginAll([]Part{b})
	if !decisions[0].Allowed {
		t.Errorf("%+v: the permit was not given back", decisions)
	}
	tickets[0].End(Cost{})
	more[0].End(Cost{})
}

func TestPeekTakesNothing(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{limitRule(t, "tokens", "jobs", byNames("q"), 1, 1), busyRule(t, "permits", byNames("q"), 1, 0)}})
	a := partOf(t, "a")
	look := a
	look.Peek = true
	for range 3 {
		if decisions, tickets := f.BeginAll([]Part{look}); !decisions[0].Allowed || tickets[0] != nil {
			t.Fatalf("%+v, %v", decisions, tickets)
		}
	}
	if decisions, _ := f.BeginAll([]Part{a}); !decisions[0].Allowed {
		t.Fatalf("%+v: a look has taken something", decisions)
	}
	if decisions, _ := f.BeginAll([]Part{look}); decisions[0].Allowed {
		t.Errorf("%+v: want a look to see that there is nothing left", decisions)
	}
}

// HTTP requests may be parts, and options apply to them as to others.
func TestPartsOfHTTP(t *testing.T) {
	var after int
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{limitRule(t, "r", "GET /s", byNames("q"), 1, 1)}},
		WithSkip(func(r *http.Request) bool { return r.URL.Path == "/health" }),
		WithHooks(Hooks{After: func(Request, rules.Decision) { after++ }}))
	health := Part{Request: Request{HTTP: &http.Request{URL: &url.URL{Path: "/health"}, Header: http.Header{}}}}
	search := Part{Request: get("", "/s", "q=1")}
	for i := range 2 {
		decisions, _ := f.BeginAll([]Part{health, search})
		if !decisions[0].Allowed || decisions[1].Allowed != (i == 0) {
			t.Errorf("%d: %+v", i, decisions)
		}
	}
	if after != 2 {
		t.Errorf("%d calls of After, want 2: one for each part that is not skipped", after)
	}
}

// A panic lets the request pass and leaves no permit behind.
func TestPartsFailOpen(t *testing.T) {
	ruleset := rules.Rules{Rules: []rules.Rule{busyRule(t, "permits", byNames("q"), 1, 0)}}
	f := newFixture(t, ruleset)
	a := partOf(t, "a")
	a.MakeHTTP = func() *http.Request { panic("bad") }
	f.opts.skip = func(*http.Request) bool { return false } // asks for the request
	if decisions, _ := f.BeginAll([]Part{a}); !decisions[0].Allowed || decisions[0].Reason != rules.ReasonOpen || f.Stats().Panics != 1 {
		t.Errorf("%+v, %+v", decisions, f.Stats())
	}
	f.opts.skip = nil
	for range 2 {
		decisions, tickets := f.BeginAll([]Part{a})
		if !decisions[0].Allowed {
			t.Fatalf("%+v", decisions)
		}
		tickets[0].End(Cost{Time: time.Second})
	}
}
