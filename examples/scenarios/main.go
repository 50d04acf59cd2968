// Command scenarios shows the four situations in which an API needs limits, each with
// its rule in scenarios.yaml and some traffic. It prints which requests are served, which wait,
// and which are refused.
//
//	go run ./examples/scenarios
package main

import (
	"context"
	_ "embed"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"sync"
	"text/tabwriter"
	"time"
	_ "time/tzdata" // for limit.zone, if the system has none

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/middleware"
)

//go:embed scenarios.yaml
var rules []byte

// reportTakes is the time that the slow API takes.
const reportTakes = 100 * time.Millisecond

// shop returns the API to be guarded.
func shop() *http.ServeMux {
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }
	mux.HandleFunc("GET /products/{id}", answer)
	mux.HandleFunc("GET /orders", answer)
	mux.HandleFunc("GET /search", answer)
	mux.HandleFunc("GET /report", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(reportTakes)
		answer(w, r)
	})
	return mux
}

// alone is the sink of a single instance, without an aggregator to send counts to. A value that
// exceeds the whole threshold on one instance is limited there anyway.
type alone struct{ collector.CountsOnly }

func (alone) Send(context.Context, collector.Flush, []collector.Count) collector.Sent {
	return collector.Sent{}
}
func (alone) Fit(text []byte) []byte { return text }
func (alone) Close() error           { return nil }

// guarded returns the shop behind its rules. The collector runs until the context ends; the
// returned function waits for its end.
func guarded(ctx context.Context) (http.Handler, func() error, error) {
	file, err := config.Parse("scenarios.yaml", rules)
	if err != nil {
		return nil, nil, err
	}
	counts, err := collector.New(collector.Config{Sink: alone{}, Rules: file.Rules})
	if err != nil {
		return nil, nil, err
	}
	guard, err := middleware.New(file.Rules, counts)
	if err != nil {
		return nil, nil, err
	}
	done := make(chan error, 1)
	go func() { done <- counts.Run(ctx) }()
	return guard.Handler(shop()), func() error { return <-done }, nil
}

// Scenario is traffic for one of the rules: Requests requests, evenly over For.
type Scenario struct {
	Rule, What string
	Requests   int
	For        time.Duration
	URL        func(i int) string
}

var scenarios = []Scenario{
	{"whole-api", "300 requests at once for anything", 300, 0, func(i int) string { return fmt.Sprintf("/products/%d", i) }},
	{"slow-api", "10 reports at once, 2 at a time, each takes 100 ms", 10, 0, func(int) string { return "/report" }},
	{"costly-parameter", "20 listings at once, every other one with a filter", 20, 0, func(i int) string {
		return "/orders" + []string{"", "?filter=all"}[i%2]
	}},
	{"hot-parameter", "80 searches/s, all but a tenth for phone", 160, 2 * time.Second, func(i int) string {
		if i%10 == 0 {
			return fmt.Sprintf("/search?q=%d", i)
		}
		return "/search?q=" + url.QueryEscape("phone")
	}},
}

// Outcome is the result of a scenario's requests.
type Outcome struct {
	Served, Waited int // Waited counts the served requests that were not served at once
	Refused        map[int]int
	Longest        time.Duration
}

// Run sends the traffic, and waits for all answers.
func (s *Scenario) Run(ctx context.Context, h http.Handler) Outcome {
	o := Outcome{Refused: make(map[int]int)}
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range s.Requests {
		if s.For > 0 {
			time.Sleep(s.For / time.Duration(s.Requests))
		}
		all.Go(func() {
			w, began := httptest.NewRecorder(), time.Now()
			h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, s.URL(i), nil))
			took := time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			o.Longest = max(o.Longest, took)
			switch {
			case w.Code != http.StatusOK:
				o.Refused[w.Code]++
			case took >= reportTakes*3/2:
				o.Served++
				o.Waited++
			default:
				o.Served++
			}
		})
	}
	all.Wait()
	return o
}

func main() {
	ctx, stop := context.WithCancel(context.Background())
	handler, wait, err := guarded(ctx)
	if err != nil {
		log.Fatal(err)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RULE\tTRAFFIC\tSERVED\tOF THESE WAITED\tREFUSED\tLONGEST")
	for i := range scenarios {
		s := &scenarios[i]
		o := s.Run(ctx, handler)
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%v\t%v\n", s.Rule, s.What, o.Served, o.Waited, o.Refused, o.Longest.Round(time.Millisecond))
		time.Sleep(time.Second) // the whole API's bucket fills again
	}
	_ = w.Flush() // standard output
	stop()
	if err := wait(); err != nil {
		log.Fatal(err)
	}
}
