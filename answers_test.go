package hotparam

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

// onHotRule is a rule whose hot keys have so many requests in a minute for the handler.
const onHotRule = `{id: items, match: {route: "GET /items/{id}"}, by: [path:id], hot: 1000/s, limit: {rate: %d/1m, scope: instance}, on_hot: {%s}}`

// origin is a handler that counts its calls.
type origin struct {
	*http.ServeMux
	calls atomic.Int64
}

func newOrigin() *origin {
	o := &origin{ServeMux: http.NewServeMux()}
	o.HandleFunc("GET /items/{id}", func(w http.ResponseWriter, r *http.Request) {
		n := o.calls.Add(1)
		fmt.Fprintf(w, "%s for %q, call %d", r.PathValue("id"), r.Header.Get("X-User"), n)
	})
	o.HandleFunc("/items/{id}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return o
}

// heat makes keys of the rule hot, as a watcher of Redis would.
func (f *fixture) heat(texts ...string) {
	var change published.Change
	for _, text := range texts {
		change.Hot = append(change.Hot, published.Hot{Key: rules.Key{Rule: "items", Text: text}, Until: time.Now().Add(time.Hour)})
	}
	f.guard.HotSet().Update("1", change)
}

const item7 = "GET /items/{id}?path:id=7"

func ask(h http.Handler, method, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// openOnHot opens a file with the rule, without a Redis.
func openOnHot(t *testing.T, perMinute int, onHot string) (*fixture, *origin, http.Handler) {
	t.Helper()
	o := newOrigin()
	f := open(t, shop("redis://"+nowhere(t), nowhere(t), fmt.Sprintf(onHotRule, perMinute, onHot)))
	return f, o, f.Handler(o)
}

// While a key is hot, its requests are answered from memory and take no tokens. Before and after
// they go to the handler.
func TestHotIsAnsweredFromMemory(t *testing.T) {
	f, o, h := openOnHot(t, 2, "cache: 10s")
	for i := range 3 {
		if w := ask(h, "GET", "/items/7"); w.Code != 200 || w.Header().Get("Cache-Status") != "" || o.calls.Load() != int64(i+1) {
			t.Fatalf("before it is hot: %d %v after %d calls", w.Code, w.Header(), o.calls.Load())
		}
	}
	f.heat(item7)
	for i := range 50 {
		w := ask(h, "GET", "/items/7", "X-User", fmt.Sprint(i))
		if w.Code != 200 || w.Body.String() != `7 for "", call 4` {
			t.Fatalf("hot: %d %s", w.Code, w.Body)
		}
	}
	// Another target of the same key takes the second token of the limit, the third is refused.
	for target, want := range map[string]int{"/items/7?a": 200, "/items/7": 200} {
		if w := ask(h, "GET", target); w.Code != want {
			t.Errorf("%s: %d, want %d", target, w.Code, want)
		}
	}
	if w := ask(h, "GET", "/items/7?b"); w.Code != 429 || w.Header().Get("Retry-After") == "" {
		t.Errorf("over the limit: %d %v", w.Code, w.Header())
	}
	if w := ask(h, "GET", "/items/7", "Cookie", "a=b"); w.Code != 429 {
		t.Errorf("with a cookie: %d, want the limit's answer", w.Code)
	}
	if w := ask(h, "GET", "/items/8"); w.Code != 200 || w.Header().Get("Cache-Status") != "" {
		t.Errorf("a key that is not hot: %d %v", w.Code, w.Header())
	}
	s := f.Stats().OnHot["items"]
	if s.Requests["hit"] != 50 || s.Requests["led"] != 2 || s.Requests["refused"] != 1 || s.Alone["cookie"] != 1 {
		t.Errorf("counted %+v", s)
	}
	f.await("58 requests counted", func() bool { return f.counts.Counted()[0].N == 58 })
	if got := f.guard.RuleStats()[0].Decisions; got["shared"] != 50 || got["within"] != 2 || got["limited"] != 2 {
		t.Errorf("decisions %v", got)
	}
	f.guard.HotSet().Update("2", published.Change{Cool: []published.Hot{{Key: rules.Key{Rule: "items", Text: item7}}}})
	if w := ask(h, "GET", "/items/7"); w.Header().Get("Cache-Status") != "" {
		t.Errorf("after it has cooled: %v", w.Header())
	}
}

// Requests that arrive while one is with the handler receive its answer.
func TestHotIsAnsweredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newCrowdFleet(t, 1, "wait: 10s")
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if w := ask(f.handlers[0], "GET", "/items/7"); w.Code != 200 || w.Body.String() != "/items/7" {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			})
		}
		all.Wait()
		f.close(t)
		if n := f.calls.Load(); n != 1 {
			t.Errorf("%d calls of the handler for 20 requests", n)
		}
	})
}

// A request that changes something drops the answers to its target, unless it fails.
func TestUnsafeMethodsInvalidate(t *testing.T) {
	f, _, h := openOnHot(t, 100, "cache: 10s")
	f.heat(item7)
	before := ask(h, "GET", "/items/7").Body.String()
	for _, c := range []struct {
		method, target string
		changes        bool
	}{{"POST", "/items/7", true}, {"DELETE", "/items/7", true}, {"PUT", "/items/8", false}, {"OPTIONS", "/items/7", false}, {"POST", "/other/7", false}} {
		ask(h, c.method, c.target)
		after := ask(h, "GET", "/items/7").Body.String()
		if (after != before) != c.changes {
			t.Errorf("%s %s: %s, then %s", c.method, c.target, before, after)
		}
		before = after
	}
}

// A key that becomes hot while a request changes something may have an answer from before the change.
func TestUnsafeMethodsInvalidateWhatBecomesHot(t *testing.T) {
	f, o, _ := openOnHot(t, 100, "cache: 10s")
	var before string
	h := f.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			f.heat(item7)
			before = ask(f.Handler(o), "GET", "/items/7").Body.String()
		}
		o.ServeHTTP(w, r)
	}))
	ask(h, "PUT", "/items/7")
	if after := ask(f.Handler(o), "GET", "/items/7").Body.String(); after == before {
		t.Errorf("%s, before and after the change", before)
	}
}

// A rule that changes begins without answers; one that does not keeps them.
func TestReloadInvalidatesChangedRules(t *testing.T) {
	f, o, h := openOnHot(t, 100, "cache: 10s")
	f.heat(item7)
	ask(h, "GET", "/items/7")
	text := shop("redis://"+nowhere(t), nowhere(t), fmt.Sprintf(onHotRule, 100, "cache: 10s"), fmt.Sprintf(productRule, 1))
	for _, c := range []struct {
		text  string
		calls int64
	}{{text, 1}, {strings.Replace(text, "cache: 10s", "cache: 11s", 1), 2}, {strings.Replace(text, "100/1m", "101/1m", 1), 3}} {
		f.write(c.text)
		if err := f.Reload(); err != nil {
			t.Fatal(err)
		}
		ask(h, "GET", "/items/7")
		if n := o.calls.Load(); n != c.calls {
			t.Errorf("%d calls, want %d", n, c.calls)
		}
	}
	if s := f.Stats().OnHot["items"]; s.Requests["led"] != 3 || s.Requests["hit"] != 1 {
		t.Errorf("counted %+v", s)
	}
}

// What an operator or an exception refuses is not answered from memory.
func TestRefusedIsNotAnswered(t *testing.T) {
	o := newOrigin()
	rule := strings.Replace(fmt.Sprintf(onHotRule, 100, "cache: 10s"), "hot:", `except: [{values: {"path:id": 9}, action: block}], hot:`, 1)
	f := open(t, shop("redis://"+nowhere(t), nowhere(t), rule))
	h := f.Handler(o)
	f.heat(item7, "GET /items/{id}?path:id=9")
	ask(h, "GET", "/items/7")
	if w := ask(h, "GET", "/items/9"); w.Code != http.StatusForbidden {
		t.Errorf("a value that the rule blocks: %d", w.Code)
	}
	control := published.Control{Key: rules.Key{Rule: "items", Text: item7}, Action: published.ControlBlock, Until: time.Now().Add(time.Hour)}
	f.guard.SetControls([]published.Control{control})
	if w := ask(h, "GET", "/items/7"); w.Code != http.StatusForbidden {
		t.Errorf("a key that an operator blocks: %d", w.Code)
	}
	control.Action = published.ControlAllow
	f.guard.SetControls([]published.Control{control})
	if w := ask(h, "GET", "/items/7"); w.Code != http.StatusOK || w.Header().Get("Cache-Status") != "" {
		t.Errorf("a key that an operator allows: %d %v", w.Code, w.Header())
	}
}

// An invalidation reaches all instances, whoever makes it.
func TestInvalidationReachesAllInstances(t *testing.T) {
	url := testenv.Redis(t).URL()
	o := newOrigin()
	var handlers []http.Handler
	var opened []*fixture
	for range 2 {
		f := open(t, shop(url, nowhere(t), strings.Replace(fmt.Sprintf(onHotRule, 1000, "cache: 1m"), "1000/s", "3/1m", 1)))
		opened, handlers = append(opened, f), append(handlers, f.Handler(o))
	}
	// keep makes the key hot at both, which from then on have an answer in memory.
	keep := func() {
		t.Helper()
		opened[0].await("an answer in memory at each instance", func() bool {
			kept := 0
			for _, h := range handlers {
				if ask(h, "GET", "/items/7").Header().Get("Cache-Status") == "hotparam; hit" {
					kept++
				}
			}
			return kept == len(handlers)
		})
	}
	for _, c := range []struct {
		name       string
		invalidate func()
	}{
		{"a request", func() { ask(handlers[0], "POST", "/items/7") }},
		{"a target", func() { opened[0].InvalidateTarget("example.com", "/items/7", "") }},
		{"a key", func() { opened[0].InvalidateKey(rules.Key{Rule: "items", Text: item7}) }},
		{"a lost stream", func() { opened[0].client.Del(t.Context(), published.NewLayout("shop").Invalidation) }}, // the last: it has begun
	} {
		keep()
		calls := o.calls.Load()
		c.invalidate()
		opened[1].await(c.name+" at the other instance", func() bool {
			ask(handlers[1], "GET", "/items/7")
			return o.calls.Load() > calls
		})
	}
}
