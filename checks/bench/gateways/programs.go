package gateways

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/checks/bench/load"
)

// batch is the number of checks in a call of /v1/check/batch.
const batch = 10

// startPrograms measures calls of the check door as a program makes them. It compares them with a
// plain GET of the application, which is the least that an HTTP call costs.
func startPrograms(_ testing.TB, s *site, _ *Gateway) []variant {
	all := []variant{{name: "a GET of the application instead", kind: cold, addr: s.app}}
	for _, k := range []requestKind{cold, hot, refused} {
		var requests []load.Request
		for _, target := range k.targets() {
			requests = append(requests, post("/v1/check", question(target)))
		}
		all = append(all, variant{name: "`/v1/check`", kind: k, addr: s.doors["check"], requests: requests, status: http.StatusOK, service: s.guard})
	}
	return append(all, variant{
		name: fmt.Sprintf("`/v1/check/batch` of %d", batch), kind: cold, addr: s.doors["check"], requests: batches(cold.targets()),
		status: http.StatusOK, service: s.guard, decides: batch,
	})
}

func question(target string) string { return fmt.Sprintf(`{"method":"GET","uri":%q}`, target) }

// batches returns bodies of calls that together have each target once, batch at most in a call.
func batches(targets []string) (requests []load.Request) {
	var checks []string
	for i, target := range targets {
		checks = append(checks, question(target))
		if len(checks) == batch || i == len(targets)-1 {
			requests = append(requests, post("/v1/check/batch", `{"checks":[`+strings.Join(checks, ",")+`]}`))
			checks = nil
		}
	}
	return requests
}

func post(path, body string) load.Request {
	return load.Request{Method: http.MethodPost, URL: path, Body: body}
}
