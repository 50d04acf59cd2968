package gatewaytest

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/middleware"
)

// Patience is the timeout of [Fixture.Await].
const Patience = 20 * time.Second

// Fixture has the dependencies of a door in a test. Only the test's goroutine may use it.
type Fixture struct {
	Guard   *CountingGuard // nil for the fixture of a given decider
	Decider *gateway.Decider
	Tickets *gateway.Tickets
	Logger  *slog.Logger // writes to Log
	Log     *testenv.LogBuffer
	Addr    string // host:port, or the path of a Unix socket, at which the door is served
	Stop    func() // ends the door's Serve, as the end of the test does

	tb   testing.TB
	door gateway.Door // door that was served last
}

// New returns the fixture of a decider that has these rules (see [Open]), and c.
func New(tb testing.TB, rules string, c gateway.Config) *Fixture {
	tb.Helper()
	f := &Fixture{Log: new(testenv.LogBuffer), tb: tb}
	f.Logger = slog.New(slog.NewTextHandler(f.Log, nil))
	f.Guard = Open(tb, rules, hotparam.WithLogger(f.Logger), hotparam.WithMiddleware(middleware.WithHeaders()))
	f.Decider = f.Guard.Decider(tb, c)
	f.runTickets()
	return f
}

// NewOf returns the fixture of a given decider.
func NewOf(tb testing.TB, d *gateway.Decider) *Fixture {
	f := &Fixture{Decider: d, Log: new(testenv.LogBuffer), tb: tb}
	f.Logger = slog.New(slog.NewTextHandler(f.Log, nil))
	f.runTickets()
	return f
}

func (f *Fixture) runTickets() {
	f.Tickets = gateway.NewTickets(gateway.TicketsConfig{Log: f.Logger})
	testenv.Running(f.tb, f.Tickets.Run)
}

// Serve serves a door on a free port.
func (f *Fixture) Serve(door gateway.Door) {
	f.tb.Helper()
	f.ServeOn(Listen(f.tb, "127.0.0.1:0"), door)
}

// ServeAgain serves a door at the address of the last one, which must have stopped.
func (f *Fixture) ServeAgain(door gateway.Door) {
	f.tb.Helper()
	f.ServeOn(Listen(f.tb, f.Addr), door)
}

// ServeOn serves a door on l until the test ends, or Stop is called.
func (f *Fixture) ServeOn(l net.Listener, door gateway.Door) {
	f.Addr, f.door = l.Addr().String(), door
	f.Stop = testenv.Running(f.tb, func(ctx context.Context) error { return door.Serve(ctx, l) })
}

// Await waits until ready returns true. If that takes longer than [Patience], the test fails.
func (f *Fixture) Await(what string, ready func() bool) {
	f.tb.Helper()
	for end := time.Now().Add(Patience); !ready(); time.Sleep(2 * time.Millisecond) {
		if !time.Now().After(end) {
			continue
		}
		f.tb.Fatalf("%s: not within %v; %+v; the log:\n%s", what, Patience, f.Figures(), f.Log)
	}
}

// Figures returns the counters of the door that was served last.
func (f *Fixture) Figures() (none gateway.Figures) {
	if f.door == nil {
		return none
	}
	return f.door.Figures()
}

// Faults returns how many calls the door did not use as sent, for this reason.
func (f *Fixture) Faults(r gateway.Reason) int64 { return f.Figures().Faults[r] }

// Closed returns how many connections the door closed for this reason.
func (f *Fixture) Closed(r gateway.Reason) int64 { return f.Figures().Closed[r] }

// Listen listens on a TCP address. It retries while the address is in use: a free port may be
// the local end of another process's connection for a while.
func Listen(tb testing.TB, addr string) net.Listener {
	tb.Helper()
	for end := time.Now().Add(Patience); ; time.Sleep(10 * time.Millisecond) {
		l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", addr)
		if err == nil {
			return l
		}
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(end) {
			tb.Fatal(err)
		}
	}
}

// Rules returns rules, each written as {…}, as lines of a file.
func Rules(rules ...string) string { return "  - " + strings.Join(rules, "\n  - ") + "\n" }
