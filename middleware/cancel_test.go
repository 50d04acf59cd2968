package middleware

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// cancelRule is an autoRule whose running requests are canceled.
func cancelRule(tb testing.TB, id, pool string, names ...string) rules.Rule {
	r := autoRule(tb, id, pool, names...)
	r.Limit.Cancel = true
	return r
}

// serveUntil serves a request whose handler runs until its context ends, at most a second, and
// returns the cause of the end and its time.
func serveUntil(f *fixture, query string) (cause error, took time.Duration) {
	start := time.Now()
	f.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
			cause = context.Cause(r.Context())
		case <-time.After(time.Second):
		}
	})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/s?"+query, nil))
	return cause, time.Since(start)
}

// A request is canceled if its key is held while it runs, and not if it has a permit, its key is
// only suspected, exempt or not held, or its rule does not ask for it.
func TestHeldRequestsAreCanceled(t *testing.T) {
	without := autoRule(t, "b", "", "p")
	for name, c := range map[string]struct {
		query  string
		before bool // whether the key is held before the request
		stage  published.HoldStage
		spared bool
		want   error
	}{
		"held while it runs": {query: "q=1", stage: published.HoldTrial, want: ErrHeld},
		"kept":               {query: "q=1", stage: published.HoldKept, want: ErrHeld},
		"with a permit":      {query: "q=1", stage: published.HoldTrial, before: true},
		"suspected":          {query: "q=1", stage: published.HoldSuspected},
		"exempt":             {query: "q=1", stage: published.HoldTrial, spared: true},
		"another key":        {query: "q=2", stage: published.HoldTrial},
		"another rule":       {query: "p=1", stage: published.HoldTrial},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, rules.Rules{Rules: []rules.Rule{cancelRule(t, "a", "", "q"), without}})
				hold := func() {
					hot := heldKeys(t, "a", 1, c.stage, "a GET /s?q=1", "b GET /s?p=1")
					for i := range hot {
						hot[i].Spared = c.spared
					}
					replaceHot(f.hot, "", hot)
				}
				if c.before {
					hold()
				} else {
					time.AfterFunc(300*time.Millisecond, hold)
				}
				cause, took := serveUntil(f, c.query)
				if cause != c.want || cause != nil && took > 500*time.Millisecond {
					t.Errorf("%v after %v, want %v", cause, took, c.want)
				}
				want := int64(0)
				if c.want != nil {
					want = 1
				}
				if n := f.Stats().Canceled; n != want {
					t.Errorf("canceled %d, want %d", n, want)
				}
			})
		})
	}
}

// A context costs nothing unless a rule asks for it, and ends with its ticket.
func TestTicketContext(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{cancelRule(t, "a", "", "q"), autoRule(t, "b", "", "p")}})
	plain := letIn(t, f, get("GET /s", "/s", "p=1"))
	if ctx := plain.Context(t.Context()); ctx != t.Context() {
		t.Error("another context without limit.cancel")
	}
	plain.End(Cost{})
	ticket := letIn(t, f, ofQ("1"))
	ctx := ticket.Context(t.Context())
	ticket.Start()
	if ctx.Err() != nil {
		t.Error("ended at once")
	}
	ticket.End(Cost{})
	if ctx.Err() == nil {
		t.Error("did not end with its ticket")
	}
	if ctx := (*Ticket)(nil).Context(t.Context()); ctx != t.Context() {
		t.Error("another context without a ticket")
	}
}
