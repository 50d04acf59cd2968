package rls

import (
	"net/http"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/cmd/internal/gateway/gatewaytest"
)

// A request through the door has the keys and the decisions of the Go middleware.
func TestSameKeysAsTheMiddleware(t *testing.T) {
	t.Parallel()
	gatewaytest.Run(t, func(tb testing.TB, d *gateway.Decider) gatewaytest.DoorUnderTest {
		door, err := New(gateway.DoorConfig{Decider: d, Tickets: gateway.NewTickets(gateway.TicketsConfig{})})
		if err != nil {
			tb.Fatal(err)
		}
		return gatewaytest.DoorUnderTest{Refused: http.StatusTooManyRequests, Ask: func(tb testing.TB, r *gatewaytest.ClientRequest) gatewaytest.DoorAnswer {
			response, err := door.ShouldRateLimit(tb.Context(), &ratelimit.RateLimitRequest{Domain: Domain, Descriptors: asList(descriptorOf(r))})
			if err != nil {
				tb.Fatal(err)
			}
			return answerOf(r, response)
		}}
	})
}

// descriptorOf returns the descriptor that Envoy sends for a request, with a configuration that
// names its headers.
func descriptorOf(r *gatewaytest.ClientRequest) *common.RateLimitDescriptor {
	d := descriptor("method="+r.Method, "path="+r.Target, "remote_address="+r.Addr, "header:host=shop.example")
	for name, values := range r.Header {
		for _, value := range values {
			d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: "header:" + name, Value: value})
		}
	}
	return d
}

// answerOf returns the answer that Envoy gives its client for a response.
func answerOf(to *gatewaytest.ClientRequest, r *ratelimit.RateLimitResponse) gatewaytest.DoorAnswer {
	a := gatewaytest.DoorAnswer{Header: make(http.Header), Body: string(r.GetRawBody())}
	for _, h := range r.GetResponseHeadersToAdd() {
		a.Header.Add(h.GetKey(), h.GetValue())
	}
	if r.GetOverallCode() == over {
		a.Status = http.StatusTooManyRequests
	}
	if to.Method == http.MethodHead {
		a.Body = ""
	}
	return a
}
