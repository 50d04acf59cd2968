package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/bench/gateways"
	"github.com/hotparam/hotparam/checks/real"
)

// The figures of `make bench-gateways` are valid: the guard decides on all requests through nginx
// that are configured to be checked, and takes no time for others.
func TestDoorCosts(t *testing.T) {
	t.Parallel()
	real.NginxPath(t)
	r, err := gateways.Run(t.Context(), gateways.Config{
		Program: quickCommands(t).hotparam, Rate: 200, Connections: 4, Turns: 1, Slice: 100 * time.Millisecond, Only: []string{"nginx"}, Say: t.Logf,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Gateways) != 1 || len(r.Gateways[0].Rows) != 5 || r.Gateways[0].Version == "" {
		t.Fatalf("%+v", r)
	}
	for _, row := range r.Gateways[0].Rows {
		turn, asks := row.Turns[0], strings.Contains(row.Name, "auth_request")
		if turn.P50 <= 0 || turn.P99 < turn.P50 || turn.Gateway <= 0 || (turn.Service > 0) != asks {
			t.Errorf("%s, %s: %+v", row.Name, row.Kind, turn)
		}
	}
}
