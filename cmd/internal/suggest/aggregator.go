package suggest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Pool is what an aggregator has seen of rules that share a back end and find hot keys by their
// cost.
type Pool struct {
	Name   string         `json:"pool"`
	Keys   map[string]int `json:"keys"` // number of hot keys by the stage of their hold
	Routes []*Capacity    `json:"routes"`
}

// Errors of [Pools].
var (
	ErrURL          = errors.New("want the URL of an aggregator's HTTP server, such as http://127.0.0.1:9125")
	ErrNoAggregator = errors.New("no aggregator answers there: want the address of its HTTP server (aggregator.http), of this version")
	ErrNoCost       = errors.New("the aggregator has no rule with hot: {cost: auto}, which measures routes.\n" +
		"Add one that refuses nothing: hot: {cost: auto}, limit: {concurrency: auto, on_limit: shadow}")
)

const (
	askTimeout = 10 * time.Second
	maxMetrics = 64 << 20
)

// Pools reads the pools from the metrics of an aggregator, sorted by name.
func Pools(ctx context.Context, from string) ([]*Pool, error) {
	if !strings.Contains(from, "://") {
		from = "http://" + from
	}
	u, err := url.Parse(from)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, ErrURL
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath("metrics").String(), http.NoBody)
	if err != nil {
		return nil, ErrURL
	}
	req.Header.Set("Accept", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("the aggregator cannot be asked: %w", errors.Unwrap(err))
	}
	defer resp.Body.Close() // the response has only been read
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: /metrics answers %s", ErrNoAggregator, resp.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(http.MaxBytesReader(nil, resp.Body, maxMetrics))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoAggregator, err)
	}
	if families["hotparam_hot_keys"] == nil {
		return nil, ErrNoAggregator
	}
	pools := poolsOf(families)
	if len(pools) == 0 {
		return nil, ErrNoCost
	}
	return pools, nil
}

// poolsOf returns the pools of metrics, and their routes in descending order of requests.
func poolsOf(families map[string]*dto.MetricFamily) (pools []*Pool) {
	byName := make(map[string]*Pool)
	each := func(name string, f func(p *Pool, labels map[string]string, value float64)) {
		for _, m := range families["hotparam_cost_"+name].GetMetric() {
			labels := make(map[string]string)
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			p := byName[labels["pool"]]
			if p == nil {
				p = &Pool{Name: labels["pool"], Keys: make(map[string]int)}
				byName[p.Name] = p
				pools = append(pools, p)
			}
			f(p, labels, m.GetGauge().GetValue())
		}
	}
	each("keys", func(p *Pool, labels map[string]string, value float64) { p.Keys[labels["stage"]] = int(value) })
	for name, set := range routeFigures {
		each("route_"+name, func(p *Pool, labels map[string]string, value float64) {
			i := slices.IndexFunc(p.Routes, func(c *Capacity) bool { return c.Rule == labels["rule"] && c.Route == labels["route"] })
			if i < 0 {
				i = len(p.Routes)
				p.Routes = append(p.Routes, &Capacity{Pool: p.Name, Rule: labels["rule"], Route: labels["route"]})
			}
			set(p.Routes[i], value)
		})
	}
	slices.SortFunc(pools, func(a, b *Pool) int { return cmp.Compare(a.Name, b.Name) })
	for _, p := range pools {
		slices.SortFunc(p.Routes, func(a, b *Capacity) int {
			return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Route, b.Route))
		})
	}
	return pools
}

// routeFigures are the metrics of a route.
var routeFigures = map[string]func(*Capacity, float64){
	"usual_seconds":       func(c *Capacity, v float64) { c.Usual = v },
	"requests_per_second": func(c *Capacity, v float64) { c.Now = v },
	"served_per_second":   func(c *Capacity, v float64) { c.Served = v },
	"slow_per_second":     func(c *Capacity, v float64) { c.SlowFrom = v },
	"windows":             func(c *Capacity, v float64) { c.Windows = int(v) },
	"slow_windows":        func(c *Capacity, v float64) { c.Slow = int(v) },
	"requests":            func(c *Capacity, v float64) { c.Requests = int64(v) },
}
