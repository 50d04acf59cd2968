package gateway

import (
	"bytes"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hotparam/hotparam/internal/countset"
)

// A door has as many connections as it may, closes others at once, and has room again when one
// is closed.
func TestAdmission(t *testing.T) {
	for name, test := range map[string]struct {
		peers Peers
		most  int
		stay  int // of 5 connections
		want  ConnCounters[int64]
		text  string
	}{
		"no bound":  {nil, 0, 5, ConnCounters[int64]{Connections: 5, Accepted: 5}, ""},
		"two":       {nil, 2, 2, ConnCounters[int64]{Connections: 2, Accepted: 2, Full: 3}, "too many"},
		"strangers": {Peers{netip.MustParsePrefix("10.0.0.0/8")}, 0, 0, ConnCounters[int64]{Strangers: 5}, "may not connect"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			var counters ConnCounters[atomic.Int64]
			a := Admission{Peers: test.peers, Max: test.most, Counters: &counters, Log: slog.New(slog.NewTextHandler(&log, nil))}
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			l := a.Listener(inner)
			stayed := make(chan []net.Conn)
			go func() {
				var all []net.Conn
				for {
					c, err := l.Accept()
					if err != nil {
						stayed <- all
						return
					}
					all = append(all, c)
					_, _ = c.Write([]byte{1})
				}
			}()
			stay := 0
			for range 5 {
				c, err := net.Dial("tcp", l.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = c.Close() }()
				if n, _ := c.Read(make([]byte, 1)); n == 1 {
					stay++
				}
			}
			_ = l.Close()
			conns := <-stayed
			got := countset.Load[ConnCounters[int64]](&counters)
			if stay != test.stay || len(conns) != test.stay || got != test.want {
				t.Errorf("%d stay and %d were accepted, want %d; %+v, want %+v", stay, len(conns), test.stay, got, test.want)
			}
			if text := log.String(); (text == "") != (test.text == "") || !strings.Contains(text, test.text) || strings.Count(text, "\n") > admissionLog.Burst {
				t.Errorf("logged %q, want %q twice at most", text, test.text)
			}
			for _, c := range conns {
				_, _ = c.Close(), c.Close() // a second one counts no further
			}
			if n := counters.Connections.Load(); n != 0 {
				t.Errorf("%d connections are open when all are closed", n)
			}
		})
	}
}
