package gateways

import (
	"fmt"
	"net/http"

	"github.com/hotparam/hotparam/checks/bench/load"
)

// rules has one rule for each kind of request. None of them needs a call at the end of a request.
const rules = `
namespace: bench
aggregator: {redis: %q, listen: "127.0.0.1:%d", http: "127.0.0.1:%d"}
statsd: {addresses: ["127.0.0.1:%[2]d"]}
rules:
  - {id: cold, match: {route: "GET /cold"}, by: [q], hot: 1000000/s, limit: {rate: 1000000/s, scope: instance}}
  - {id: hot, match: {route: "GET /hot"}, by: [q], hot: {rate: 50/s, hold: 1h}, limit: {rate: 1000000/s, scope: instance}}
  - {id: refused, match: {route: "GET /refused"}, by: [q], hot: {rate: 50/s, hold: 1h}, limit: {rate: 1/1h, burst: 1, scope: instance}}
`

// coldValues is the number of values of cold requests.
const coldValues = 2000

// requestKind says what the rules do with the requests of a row.
type requestKind string

const (
	cold    requestKind = "cold"    // each of coldValues in turn, none of them hot
	hot     requestKind = "hot"     // one hot value, within its limit
	refused requestKind = "refused" // one hot value, beyond its limit
)

// targets returns the paths and queries of requests.
func (k requestKind) targets() []string {
	if k != cold {
		return []string{"/" + string(k) + "?q=phone"}
	}
	targets := make([]string, coldValues)
	for i := range targets {
		targets[i] = fmt.Sprintf("/cold?q=v%d", i)
	}
	return targets
}

// gets returns requests as a client of a gateway sends them.
func (k requestKind) gets() (requests []load.Request) {
	for _, target := range k.targets() {
		requests = append(requests, load.Request{Method: http.MethodGet, URL: target})
	}
	return requests
}

// status returns the status that a gateway answers with.
func (k requestKind) status() int {
	if k == refused {
		return http.StatusTooManyRequests
	}
	return http.StatusOK
}
