package rls

import (
	"testing"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
)

// A request whose ticket finds no place, alone or with others, is refused: no one could release
// its permit.
func TestTicketsFull(t *testing.T) {
	rules := []string{`{id: slow, match: {route: "GET /slow"}, limit: {concurrency: 2}}`}
	f := open(t, rules, func(c *gateway.DoorConfig) { c.Tickets = gateway.NewTickets(gateway.TicketsConfig{Max: 1}) })
	if !f.passes(Domain, request("/slow", "id=1")) {
		t.Fatal("the first is refused")
	}
	for range 2 {
		if f.passes(Domain, request("/slow", "id=2")) {
			t.Error("a request without a place for its ticket passes")
		}
		if f.passes(Domain, request("/slow", "id=3"), request("/other", "id=4")) {
			t.Error("together with another one it passes")
		}
	}
	f.passes(Domain, request("/slow", "id=1", "done=end"))
	if !f.passes(Domain, request("/slow", "id=5")) {
		t.Error("with a place it is refused")
	}
}
