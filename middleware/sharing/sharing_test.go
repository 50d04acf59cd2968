package sharing_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/middleware/sharing"
	"github.com/hotparam/hotparam/rules"
)

// nothing is a sink that drops counts.
type nothing struct{ collector.CountsOnly }

func (nothing) Send(context.Context, collector.Flush, []collector.Count) collector.Sent {
	return collector.Sent{}
}
func (nothing) Fit(text []byte) []byte { return text }
func (nothing) Close() error           { return nil }

// site is a guard whose answers are kept, in front of a handler that never answers twice the same.
type site struct {
	guard   *middleware.Guard
	answers *sharing.Answers
	rules   *rules.Rules
	calls   int
	http.Handler
}

func newSite(t *rapid.T, all []rules.Rule) *site {
	s := &site{rules: &rules.Rules{Namespace: "test", Evaluate: rules.EvaluateAll, Rules: all}, answers: sharing.New(slog.New(slog.DiscardHandler))}
	counts, err := collector.New(collector.Config{Sink: nothing{}, Rules: s.rules})
	if err != nil {
		t.Fatal(err)
	}
	if s.guard, err = middleware.New(s.rules, counts, middleware.WithSharer(s.answers)); err != nil {
		t.Fatal(err)
	}
	s.answers.Adopt(s.rules)
	s.Handler = s.guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.calls++
		fmt.Fprint(w, s.calls)
	}))
	return s
}

// send sends a request for which a router has found this pattern.
func (s *site) send(method, target, pattern string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.Pattern = pattern
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// heat makes all keys of a GET request hot.
func (s *site) heat(t *rapid.T, target, pattern string) {
	in := httptest.NewRequest("GET", target, nil)
	explained, err := middleware.Explain(middleware.Request{
		Method: "GET", Path: in.URL.EscapedPath(), Query: in.URL.RawQuery, Pattern: pattern, HTTP: in,
	}, middleware.ExplainConfig{Rules: s.rules})
	if err != nil {
		t.Fatal(err)
	}
	var change published.Change
	for _, key := range explained.Keys {
		change.Hot = append(change.Hot, published.Hot{Key: key.Key, Until: time.Now().Add(time.Hour)})
	}
	s.guard.HotSet().Update("1", change)
}

// Whenever an answer to a GET request is kept, a request that changes its target drops it, whatever
// the rules, and whatever patterns the router finds for both.
func TestChangesReachWhatIsKept(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		segment := rapid.SampledFrom([]string{"a", "b", "A", "%61", "a%2Fb", "x%20y"})
		path := rapid.Custom(func(t *rapid.T) string {
			end := rapid.SampledFrom([]string{"", "", "/"}).Draw(t, "end")
			return "/" + strings.Join(rapid.SliceOfN(segment, 1, 3).Draw(t, "path"), "/") + end
		})
		pattern := rapid.Custom(func(t *rapid.T) string {
			if rapid.Bool().Draw(t, "literal") {
				return path.Draw(t, "path")
			}
			return rapid.SampledFrom([]string{"/", "/{x}", "/{x}/{y}", "/a/{x}", "/{x}/a", "/{x}/", "/a/{rest...}", "/{x}/{$}", "/{x}/{y}/{z...}"}).Draw(t, "pattern")
		})
		var all []rules.Rule
		for i := range rapid.IntRange(1, 3).Draw(t, "rules") {
			text := "*"
			if rapid.IntRange(0, 5).Draw(t, "any") > 0 {
				text = rapid.SampledFrom([]string{"", "GET "}).Draw(t, "method") + pattern.Draw(t, "route")
			}
			route, err := rules.ParseRoute(text)
			if err != nil {
				t.Fatal(err)
			}
			r := rules.Rule{ID: fmt.Sprint("r", i), Match: rules.Match{Route: route}, By: rules.By{Kind: rules.ByNames, Names: []rules.Param{{Name: "q"}}}}
			r.Hot = []rules.Threshold{rules.NewThreshold(rules.Rate{N: 1000, Per: time.Second})}
			if rapid.IntRange(0, 3).Draw(t, "on_hot") > 0 {
				r.OnHot = &rules.OnHot{Coalesce: true, Cache: time.Minute}
			}
			all = append(all, r)
		}
		patternOf := func(label string) string {
			switch rapid.IntRange(0, 3).Draw(t, label) {
			case 0:
				return ""
			case 1:
				return "GET " + all[rapid.IntRange(0, len(all)-1).Draw(t, "rule")].Match.Route.Path()
			case 2:
				return rapid.SampledFrom([]string{"", "GET ", "shop.example"}).Draw(t, "method") + pattern.Draw(t, "pattern")
			}
			return pattern.Draw(t, "pattern")
		}
		target := "http://shop.example" + path.Draw(t, "target") + "?q=1"
		getPattern := patternOf("pattern of GET")
		s := newSite(t, all)
		defer func() { _ = s.answers.Close(context.Background()) }()
		s.heat(t, target, getPattern)
		s.send("GET", target, getPattern)
		kept := s.send("GET", target, getPattern)
		if status := kept.Header().Get("Cache-Status"); status != "hotparam; hit" {
			seen[status]++
			return
		}
		seen["kept"]++
		method := rapid.SampledFrom([]string{"POST", "PUT", "PATCH", "DELETE", "LOCK"}).Draw(t, "method")
		s.send(method, target, strings.Replace(patternOf("pattern of the change"), "GET", method, 1))
		if after := s.send("GET", target, getPattern); after.Body.String() == kept.Body.String() {
			t.Fatalf("%s %s leaves the answer in memory", method, target)
		}
	})
	if !testing.Short() && (seen["kept"] == 0 || seen[""] == 0 || seen["hotparam; fwd=request; detail=route"] == 0) {
		t.Errorf("%v: the test tests too little", seen)
	}
}
