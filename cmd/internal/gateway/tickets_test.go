package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/cmd/internal/gateway/gatewaytest"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/middleware"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

func decider(t testing.TB, rules string, c gateway.Config) *gateway.Decider {
	t.Helper()
	return gatewaytest.Open(t, rules).Decider(t, c)
}

const twoAtATime = `  - {id: slow, match: {route: "GET /slow"}, limit: {concurrency: 2}}` + "\n"

func begin(t testing.TB, d *gateway.Decider) *middleware.Ticket {
	t.Helper()
	_, ticket := d.Begin(t.Context(), &gateway.Call{Method: "GET", Target: "/slow"})
	return ticket
}

func passes(t testing.TB, d *gateway.Decider) bool {
	t.Helper()
	decision, ticket := d.Begin(t.Context(), &gateway.Call{Method: "GET", Target: "/slow"})
	ticket.End(middleware.Cost{})
	return decision.Allowed
}

// Requests that share an id are ended one by one, and no end counts twice.
func TestTicketsOfOneID(t *testing.T) {
	d := decider(t, twoAtATime, gateway.Config{})
	tickets := gateway.NewTickets(gateway.TicketsConfig{})
	for range 2 {
		if !tickets.HoldAs("id", begin(t, d)) {
			t.Fatal("no room")
		}
	}
	if passes(t, d) {
		t.Fatal("a third request passed")
	}
	for i, want := range []gateway.EndResult{gateway.Ended, gateway.Ended, gateway.Repeated} {
		if got := tickets.End("id", middleware.Cost{}); got != want {
			t.Errorf("end %d: %v, want %v", i, got, want)
		}
		if i == 0 {
			first, second := begin(t, d), begin(t, d)
			if first == nil || second != nil {
				t.Errorf("the first end gave back %v and %v, want one permit", first, second)
			}
			first.End(middleware.Cost{})
		}
	}
	if got := tickets.End("other", middleware.Cost{}); got != gateway.Unknown {
		t.Errorf("an id that was never held: %v", got)
	}
	want := gateway.TicketStats{Ended: 2, Repeated: 1, Unknown: 1}
	if got := tickets.Stats(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A request that finds no room for its ticket returns its permit.
func TestTicketsAreBounded(t *testing.T) {
	d := decider(t, twoAtATime, gateway.Config{})
	tickets := gateway.NewTickets(gateway.TicketsConfig{Max: 1})
	if _, ok := tickets.Hold(begin(t, d)); !ok {
		t.Fatal("no room for the first")
	}
	if _, ok := tickets.Hold(begin(t, d)); ok {
		t.Error("there was room for a second")
	}
	if !passes(t, d) {
		t.Error("the second ticket keeps its permit")
	}
	// Ids of ended requests take no room either.
	for i := range 100 {
		id := fmt.Sprint(i)
		tickets.End(id, middleware.Cost{})
		tickets.HoldAs(id, nil)
		tickets.End(id, middleware.Cost{})
	}
	if s := tickets.Stats(); s.Full < 1 || s.Held != 1 {
		t.Errorf("%+v", s)
	}
}

// A request whose end is never reported ends when it reaches the maximum age, and is forgotten.
func TestTicketsExpire(t *testing.T) {
	log := new(testenv.LogBuffer)
	synctest.Test(t, func(t *testing.T) {
		tickets := gateway.NewTickets(gateway.TicketsConfig{Age: time.Minute, Log: slog.New(slog.NewTextHandler(log, nil))})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- tickets.Run(ctx) }()
		old, _ := tickets.Hold(nil)
		time.Sleep(50 * time.Second)
		young, _ := tickets.Hold(nil)
		time.Sleep(15 * time.Second)
		if s := tickets.Stats(); s.Held != 1 || s.Expired != 1 {
			t.Errorf("%+v, want one that has expired", s)
		}
		if got := tickets.End(old, middleware.Cost{}); got != gateway.Unknown {
			t.Errorf("the end of one that has expired: %v", got)
		}
		if got := tickets.End(young, middleware.Cost{}); got != gateway.Ended {
			t.Errorf("the end of a young one: %v", got)
		}
		time.Sleep(30 * time.Second)
		if got := tickets.End(young, middleware.Cost{}); got != gateway.Repeated {
			t.Errorf("the end that was told again: %v", got)
		}
		time.Sleep(3 * time.Minute)
		if got := tickets.End(young, middleware.Cost{}); got != gateway.Unknown {
			t.Errorf("the end that was told again much later: %v", got)
		}
		tickets.HoldAs("left", nil)
		stop()
		if err := <-done; err != nil || tickets.Stats().Held != 0 {
			t.Errorf("Run: %v, %+v", err, tickets.Stats())
		}
	})
	if n := len(log.Lines()); n != 1 {
		t.Errorf("%d lines in the log:\n%s", n, log)
	}
}

// Each request is ended exactly once, whoever ends it.
func TestTicketsAreConcurrent(t *testing.T) {
	tickets := gateway.NewTickets(gateway.TicketsConfig{Age: 2 * time.Millisecond})
	testenv.Running(t, tickets.Run)
	var ended atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 2000 {
				id := fmt.Sprint(i % 50)
				tickets.HoldAs(id, nil)
				if tickets.End(id, middleware.Cost{}) == gateway.Ended {
					ended.Add(1)
				}
			}
		})
	}
	all.Wait()
	s := tickets.Stats()
	if s.Ended != ended.Load() || s.Ended+s.Expired+int64(s.Held) != 16000 {
		t.Errorf("%+v and %d ends, want 16000 requests in all", s, ended.Load())
	}
}
