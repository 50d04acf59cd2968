package real

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// graphiteHas waits until the series has so many counts in all.
func graphiteHas(t *testing.T, g *GraphiteServer, series string, want float64) {
	t.Helper()
	got := 0.0
	for deadline := time.Now().Add(testenv.Patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		got = 0
		for _, s := range g.Render(series, time.Minute) {
			for _, p := range s.Points {
				got += p.Value
			}
		}
		if got == want {
			return
		}
	}
	t.Fatalf("Graphite has %v of %s, want %v", got, series, want)
}

func send(t *testing.T, network, addr, lines string) {
	t.Helper()
	conn, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintln(conn, lines); err != nil {
		t.Fatal(err)
	}
}

func TestStatsDToGraphite(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	g := Graphite(t)
	for _, test := range []struct {
		modern bool
		series string
	}{
		{false, "stats_counts.shop.hot_param.q=1"},
		{true, "stats.counters.shop.hot_param.q=1.count"},
	} {
		s := StatsD(t, StatsDOptions{Carbon: g.Carbon(), Modern: test.modern})
		for range 10 {
			send(t, "udp", s.Addr(), "shop.hot_param.q=1:3|c")
		}
		graphiteHas(t, g, test.series, 30)
	}
}

func TestStatsDRestarts(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	s := StatsD(t, StatsDOptions{})
	addr := s.Addr()
	s.Kill()
	s.Restart()
	s.Restart()
	if s.Addr() != addr {
		t.Errorf("it was at %s and is at %s", addr, s.Addr())
	}
}

func TestGraphiteRestarts(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	g := Graphite(t)
	send(t, "tcp", g.Carbon(), fmt.Sprintf("stats.before 7 %d", time.Now().Unix()))
	graphiteHas(t, g, "stats.before", 7)
	g.KillWeb()
	if !testenv.IsFree(g.port) {
		t.Error("somebody listens after KillWeb")
	}
	g.KillCarbon()
	if conn, err := net.Dial("tcp", g.Carbon()); err == nil {
		conn.Close()
		t.Error("somebody listens after KillCarbon")
	}
	g.StartWeb()
	g.StartCarbon()
	send(t, "tcp", g.Carbon(), fmt.Sprintf("stats.after 8 %d", time.Now().Unix()))
	graphiteHas(t, g, "stats.after", 8)
	graphiteHas(t, g, "stats.*", 15)
}
