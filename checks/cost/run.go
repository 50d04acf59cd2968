package cost

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/bench/load"
	"github.com/hotparam/hotparam/hotkeys"
)

// Result is the outcome of a run.
type Result struct {
	Limiter  Limiter
	Scenario Scenario
	Load     Load
	Holds    map[string]*Held // the keys that were held, by their text

	requests []request
	samples  []load.Sample
}

// clientTimeout is how long a client waits for an answer.
const clientTimeout = 5 * time.Second

// Run sends the requests of a scenario to instances that a limiter protects. program is the
// hotparam command.
func Run(tb testing.TB, db *Database, program string, limiter Limiter, s Scenario, l Load) *Result {
	tb.Helper()
	r := &Result{Limiter: limiter, Scenario: s, Load: l, requests: s.requests(l)}
	c := instanceConfig{Database: db.uri, Connections: connections / instances, Limiter: limiter}
	watch := func(context.Context, time.Time) map[string]*Held { return nil }
	if limiter == Hotparam {
		file, redisURL := startAggregator(tb, program, s.By)
		client, err := hotkeys.NewClient(redisURL)
		if err != nil {
			tb.Fatal(err)
		}
		defer client.Close()
		c.Rules, watch = file, func(ctx context.Context, begin time.Time) map[string]*Held { return watchHolds(ctx, client, begin) }
	}
	var addrs []string
	for range instances {
		addrs = append(addrs, startInstance(tb, c))
	}
	if limiter == Envoy {
		addrs = []string{startEnvoy(tb, addrs)}
	}

	begin := time.Now().Add(time.Second)
	ctx, stop := context.WithCancel(tb.Context())
	defer stop()
	holds := make(chan map[string]*Held)
	go func() { holds <- watch(ctx, begin) }()
	requests := make([]load.Request, len(r.requests))
	for i, req := range r.requests {
		requests[i] = load.Request{Due: req.due, Method: http.MethodGet, URL: "http://" + addrs[i%len(addrs)] + req.path}
	}
	clients := load.NewClient(clientTimeout, 0)
	defer clients.Close()
	r.samples = clients.Send(ctx, begin, requests)
	stop()
	r.Holds = <-holds
	return r
}
