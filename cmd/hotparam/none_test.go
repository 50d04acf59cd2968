package main

import (
	"strings"
	"testing"
)

const (
	limitsOnly = `namespace: shop
aggregator: {source: none, redis: "redis://127.0.0.1:1"}
rules:
  - {id: search, match: {route: "GET /search"}, by: [q], limit: {rate: 1/1h, burst: 1}}
`
	sharedOnly = limitsOnly + `  - {id: orders, match: {route: "POST /orders"}, limit: {rate: 5/1h, scope: exact}}
`
)

// With source: none each command reports its consequence. An aggregator has nothing to do, doctor
// needs Redis only for shared limits, and rules with hot are refused at their line.
func TestSourceNone(t *testing.T) {
	file, shared := write(t, limitsOnly), write(t, sharedOnly)
	hot := write(t, limitsOnly+"  - {id: h, match: {route: '*'}, hot: 9/s, limit: 1/s}\n")
	for _, args := range [][]string{{"aggregator", "--config"}, {"aggregator", "--check", "--config"}} {
		hotparamCommand(t, append(args, file)...).exits(t, exitConfig, "no aggregator is needed")
		hotparamCommand(t, append(args, hot)...).exits(t, exitConfig, hot+":5:39", "no key becomes hot", "remove hot")
	}
	hotparamCommand(t, "rules", "lint", file).exits(t, exitOK, "counts: none: only limits, without an aggregator")
	hotparamCommand(t, "emit", "--config", file, "GET /search?q=a").exits(t, exitUsage, "no rule with hot makes such a key")
	r := hotparamCommand(t, "doctor", "--config", file)
	if r.code != exitOK || !strings.Contains(r.out, "no aggregator is needed") || !strings.Contains(r.out, "no Redis is needed") {
		t.Errorf("exit code %d\n%s", r.code, r.out)
	}
	r = hotparamCommand(t, "doctor", "--config", shared)
	if r.code != exitFailure || !strings.Contains(r.out, "problem  redis") || strings.Contains(r.out, "publisher") {
		t.Errorf("exit code %d\n%s", r.code, r.out)
	}
	r = hotparamCommand(t, "rules", "explain", "--config", file, "GET", "/search?q=a")
	if r.code != exitOK || strings.Contains(r.out, "Redis") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	g := startGuard(t, file)
	const question = `{"method": "GET", "uri": "/search?q=a"}`
	if !g.passes(question) || g.passes(question) {
		t.Error("want the first of the guard to pass alone")
	}
	if got := g.get("/-/ready"); !strings.HasPrefix(got, "200 OK ready, with limits alone") {
		t.Error(got)
	}
}
