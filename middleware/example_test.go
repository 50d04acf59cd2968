package middleware_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/statsdsink"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// newGuard returns a guard with the rules of a file.
func newGuard(yaml string, opts ...middleware.Option) (*middleware.Guard, error) {
	file, err := config.Parse("hotparam.yaml", []byte(yaml))
	if err != nil {
		return nil, err
	}
	sink, err := statsdsink.New(statsdsink.Config{Rules: file.Rules, Addrs: []string{"127.0.0.1:8125"}})
	if err != nil {
		return nil, err
	}
	counts, err := collector.New(collector.Config{Rules: file.Rules, Sink: sink}) // a program runs counts.Run
	if err != nil {
		return nil, err
	}
	return middleware.New(file.Rules, counts, opts...)
}

// Each value of q has its own limit, whatever else the request has.
func ExampleGuard_Handler() {
	guard, err := newGuard(`
namespace: shop
rules:
  - {id: search, match: {route: "GET /search"}, by: [q], limit: {rate: 1/1m, burst: 2}}
`)
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /search", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "found") })
	handler := guard.Handler(mux)

	for _, url := range []string{"/search?q=phone", "/search?page=2&q=phone", "/search?q=phone", "/search?q=lamp"} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, nil))
		fmt.Printf("%s %d %q\n", url, w.Code, w.Header().Get("Retry-After"))
	}
	// Output:
	// /search?q=phone 200 ""
	// /search?page=2&q=phone 200 ""
	// /search?q=phone 429 "60"
	// /search?q=lamp 200 ""
}

// Limits that are known beforehand need neither a file nor a collector.
func ExampleLimit() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /search", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "found") })
	limit := middleware.Limit(limiter.Per(2, time.Minute), "addr:ip")
	handler := limit(mux) // or r.Use(limit) of a router

	for _, from := range []string{"192.0.2.1:4001", "192.0.2.1:4002", "192.0.2.1:4003", "192.0.2.2:4004"} {
		r := httptest.NewRequest(http.MethodGet, "/search", nil)
		r.RemoteAddr = from
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(from, w.Code)
	}
	// Output:
	// 192.0.2.1:4001 200
	// 192.0.2.1:4002 200
	// 192.0.2.1:4003 429
	// 192.0.2.2:4004 200
}

// A rule with hot limits only keys that are hot. In a program a hotkeys.Watcher writes
// them to the HotSet.
func ExampleGuard_HotSet() {
	guard, err := newGuard(`
namespace: shop
rules:
  - {id: search, match: {route: "GET /search"}, by: [q], hot: 200/s, limit: {rate: 1/1m, burst: 1}}
`)
	if err != nil {
		fmt.Println(err)
		return
	}
	phone := middleware.Request{Method: "GET", Pattern: "GET /search", Path: "/search", Query: "q=phone"}
	fmt.Println(guard.Check(phone).Reason, guard.Check(phone).Reason)

	guard.HotSet().Update("1", published.Change{Hot: []published.Hot{{
		Key: rules.Key{Rule: "search", Text: "GET /search?q=phone"},
	}}})
	fmt.Println(guard.Check(phone).Reason, guard.Check(phone).Reason)
	// Output:
	// none none
	// within limited
}

// RPCs, jobs and look-ups in a cache are guarded by name and parameters.
func ExampleGuard_Enter() {
	guard, err := newGuard(`
namespace: shop
rules:
  - {id: find, match: {route: SearchService/Find}, by: [q], limit: {rate: 1/1m, burst: 1}}
`)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		d := guard.Enter(context.Background(), "SearchService/Find", rules.Param{Name: "q", Value: "phone"})
		fmt.Println(d.Allowed, d.Reason)
	}
	// Output:
	// true within
	// false limited
}

// A rule can count what requests cost, here rows, instead of the requests.
func ExampleAddCost() {
	guard, err := newGuard(`
namespace: shop
rules:
  - {id: report, match: {route: "GET /report"}, by: [customer], count: units, limit: {rate: 100/1m, burst: 100}}
`)
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /report", func(w http.ResponseWriter, r *http.Request) {
		middleware.AddCost(r.Context(), 150) // the rows that were read
	})
	handler := guard.Handler(mux)
	for range 2 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/report?customer=7", nil))
		fmt.Println(w.Code)
	}
	// Output:
	// 200
	// 429
}

// Hooks see each decision, for custom logs and metrics.
func ExampleWithHooks() {
	guard, err := newGuard(`
namespace: shop
rules:
  - {id: search, match: {route: "GET /search"}, by: [q], limit: {rate: 1/1m, burst: 1}}
`, middleware.WithHooks(middleware.Hooks{
		Denied: func(r middleware.Request, d rules.Decision) { fmt.Println("denied:", d.Rule, r.Query) },
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, query := range []string{"q=phone", "q=phone", "q=lamp"} {
		guard.Check(middleware.Request{Method: "GET", Pattern: "GET /search", Path: "/search", Query: query})
	}
	// Output: denied: search q=phone
}
