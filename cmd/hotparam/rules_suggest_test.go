package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const costRules = `namespace: shop
aggregator: {listen: '127.0.0.1:0'}
rules:
  - {id: filters, match: {route: "GET /orders"}, by: [filter], hot: {cost: auto}, limit: {concurrency: auto, on_limit: shadow}, backend: orders-db}
`

// metricsServer serves fixed metrics.
func metricsServer(t *testing.T, text string) (url string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		fmt.Fprint(w, text)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// seenMetrics are the metrics of an aggregator with a pool of one route.
func seenMetrics(windows int) string {
	const labels = `{pool="orders-db",rule="filters",route="GET /orders"} `
	text := "hotparam_hot_keys 1\n# TYPE hotparam_cost_keys gauge\n" + `hotparam_cost_keys{pool="orders-db",stage="kept"} 1` + "\n"
	for name, value := range map[string]any{"usual_seconds": 0.005, "requests_per_second": 300, "served_per_second": 411.7, "slow_per_second": 120, "windows": windows, "slow_windows": 3, "requests": 4000} {
		text += fmt.Sprintf("# TYPE hotparam_cost_route_%s gauge\nhotparam_cost_route_%s%s%v\n", name, name, labels, value)
	}
	return text
}

func TestRulesSuggest(t *testing.T) {
	url := metricsServer(t, seenMetrics(60))
	r := hotparamCommand(t, "rules", "suggest", "--from", url)
	r.exits(t, exitOK)
	for _, want := range []string{
		"# Pool orders-db: 0 keys on trial, 1 held, 0 suspected.\n",
		"# GET /orders  filters  300/s  5ms         412/s                120/s             60       3\n",
		"#   # A request usually takes 5ms. Up to 412/s were served at that speed, in a window of 10 s. It was slow at 120/s already (3 of 60 windows)",
		"#     limit: {rate: 412/s, scope: fleet, on_limit: shadow}\n",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is not in\n%s", want, r.out)
		}
	}
	for line := range strings.Lines(r.out) {
		if !strings.HasPrefix(line, "#") {
			t.Errorf("%q would change something", line)
		}
	}
	_, proposal, _ := strings.Cut(r.out, "\n# rules:\n")
	text := "rules:\n"
	for line := range strings.Lines(proposal) {
		text += strings.TrimPrefix(line, "# ")
	}
	withInput(t, text, "rules", "lint", "-").exits(t, exitOK, "good, 1 rule", "orders-capacity")

	r = hotparamCommand(t, "rules", "suggest", "--json", "--from", strings.TrimPrefix(url, "http://"))
	r.exits(t, exitOK)
	var s capacitySuggestion
	decodeJSON(t, r.out, &s)
	if len(s.Pools) != 1 || s.Pools[0].Routes[0].Limit != "412/s" || s.Pools[0].Keys["kept"] != 1 || !strings.Contains(s.Rules, "rate: 412/s") {
		t.Errorf("%+v", s)
	}

	r = hotparamCommand(t, "rules", "suggest", "--from", metricsServer(t, seenMetrics(29)))
	r.exits(t, exitOK, "nothing to propose yet: a route needs 30 windows")
	if strings.Contains(r.out, "rules:") {
		t.Error(r.out)
	}
}

func TestRulesSuggestSaysWhyNot(t *testing.T) {
	suggestFrom := func(from string) result { return hotparamCommand(t, "rules", "suggest", "--from", from) }
	hotparamCommand(t, "rules", "suggest").exits(t, exitUsage, "--from is missing")
	suggestFrom("ftp://a").exits(t, exitUsage, "--from: want the URL of an aggregator's HTTP server")
	suggestFrom("http://"+unreachable(t)).exits(t, exitUnreachable, "the aggregator cannot be asked")
	suggestFrom(metricsServer(t, "")+"/elsewhere").exits(t, exitUnreachable, "no aggregator answers there", "404")
	suggestFrom(metricsServer(t, "go_goroutines 7\n")).exits(t, exitUnreachable, "no aggregator answers there")
	suggestFrom(metricsServer(t, "<html>")).exits(t, exitUnreachable, "no aggregator answers there")
	suggestFrom(metricsServer(t, "hotparam_hot_keys 1\n")).exits(t, exitFailure, "no rule with hot: {cost: auto}", "on_limit: shadow")
	suggestFrom(metricsServer(t, "hotparam_hot_keys 1\n"+`hotparam_cost_keys{pool="a",stage="kept"} 0`+"\n")).exits(t, exitFailure, "has measured no requests yet")
}

// An aggregator with such a rule answers.
func TestRulesSuggestAsksAnAggregator(t *testing.T) {
	for config, want := range map[string]string{costRules: "has measured no requests yet", goodRules + "aggregator: {listen: '127.0.0.1:0'}\n": "no rule with hot: {cost: auto}"} {
		d := startDaemon(t, "--redis", "redis://"+unreachable(t), "--config", write(t, config))
		eventually(t, func() error {
			if r := hotparamCommand(t, "rules", "suggest", "--from", d.http); r.code != exitFailure || !strings.Contains(r.err, want) {
				return fmt.Errorf("exit code %d, want %q in %s", r.code, want, r.err)
			}
			return nil
		})
		d.end()
	}
}
