package service

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"testing"

	"github.com/hotparam/hotparam/cmd/internal/connlimit"
	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/middleware"
)

// tallied is a door that only counts.
type tallied struct{ *gateway.Tally }

func (tallied) Serve(context.Context, net.Listener) error { return nil }
func (d tallied) Figures() gateway.Figures {
	return d.Tally.Figures(connlimit.Stats{Connections: 2, Full: 1})
}

// The figures of a name are the sums over all its doors.
func TestFiguresAreOfAllDoors(t *testing.T) {
	s := new(Service)
	for range 3 {
		d := tallied{gateway.NewTally(slog.New(slog.DiscardHandler), []gateway.Reason{gateway.Busy}, []gateway.Reason{gateway.Slow})}
		d.Decided(true)
		d.Decided(false)
		d.Fault(gateway.Busy, "")
		d.Closed(gateway.Slow, "a warning")
		tickets := gateway.NewTickets(gateway.TicketsConfig{})
		tickets.End("unknown", middleware.Cost{})
		s.doors = append(s.doors, &openDoor{Door: d, name: "auth", tickets: tickets})
	}
	s.doors[2].name = "rls"
	all := s.Figures()
	for name, n := range map[string]int64{"auth": 2, "rls": 1} {
		f := all[name]
		if f.Passed != n || f.Refused != n || f.Connections != 2*n || f.Tickets.Unknown != n ||
			!maps.Equal(f.Faults, map[gateway.Reason]int64{gateway.Busy: n}) ||
			!maps.Equal(f.Closed, map[gateway.Reason]int64{gateway.Slow: n, "idle": 0, "full": n, "not_allowed": 0, "tls": 0}) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
