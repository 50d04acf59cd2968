package gatewaytest

import (
	"net/http"
	"os"
	"testing"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/middleware"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// direct returns a door that calls the decider itself.
func direct(d *gateway.Decider) DoorUnderTest {
	return DoorUnderTest{Ask: func(tb testing.TB, r *ClientRequest) DoorAnswer {
		header := r.Header.Clone()
		if header == nil {
			header = make(http.Header)
		}
		header.Set("Host", "shop.example")
		decision, ticket := d.Begin(tb.Context(), &gateway.Call{Method: r.Method, Target: r.Target, Header: header, Addr: r.Addr})
		ticket.End(middleware.Cost{})
		a := decision.Answer()
		if r.Method == http.MethodHead {
			a.Body = nil
		}
		return DoorAnswer{Status: a.Status, Header: a.Header, Body: string(a.Body)}
	}}
}

func TestDecider(t *testing.T) {
	Run(t, func(_ testing.TB, d *gateway.Decider) DoorUnderTest { return direct(d) })
}
