package statsdsource

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// start runs an aggregator on a free port. end stops it and returns Run's error.
func start(t *testing.T, c Config) (a *Source, conn net.Conn, end func() error) {
	t.Helper()
	c.Listen = []string{"127.0.0.1:0"}
	ctx, cancel := context.WithCancel(t.Context())
	a, err := New(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- a.Run(ctx) }()
	conn, err = net.Dial("udp", a.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return a, conn, func() error {
		_ = conn.Close()
		cancel()
		return <-ran
	}
}

func send(t *testing.T, conn net.Conn, packet string) {
	t.Helper()
	if _, err := conn.Write([]byte(packet)); err != nil {
		t.Fatal(err)
	}
}

// liveHead returns a meta line with the present time.
func liveHead(seq uint64) string {
	return string(wire.AppendMeta(nil, wire.Meta{
		Instance: []byte("api-1"), Incarnation: 7, Seq: seq, Start: time.Now().UnixNano(), Held: 1,
	}))
}

func TestSourceFindsHotKeysInPackets(t *testing.T) {
	out := newRecorder()
	a, conn, end := start(t, Config{Rules: testRules(hotRule("terms", 30, 10*time.Second)), Publisher: out, Shards: 2})
	for i := range 3 {
		send(t, conn, liveHead(uint64(i+1))+strings.Repeat("\nshop.terms.hot_param.q=hot:5|c\nshop.terms.hot_param.q=cold:1|c", 2))
	}
	<-out.published // by the third packet, or the test hangs
	if err := end(); err != nil {
		t.Fatal(err)
	}
	hot := out.hot()
	h, ok := hot[rules.Key{Rule: "terms", Text: "q=hot"}]
	if !ok || len(hot) != 1 || h.Low != 30 || h.High != published.Unknown || h.Rate != 3 {
		t.Errorf("hot are %+v", hot)
	}
	s := a.Stats()
	if s.Decoder.Packets != 3 || s.Decoder.Lines != 12 || s.Decoder.Counts != 12 || s.Decoder.Senders != 1 {
		t.Errorf("stats %+v", s.Decoder)
	}
}

// Packets in the socket at the time of the end are still processed, and the stats include all of
// them.
func TestSourceDrainsWhenItsContextEnds(t *testing.T) {
	out := newRecorder()
	ctx, cancel := context.WithCancel(t.Context())
	a, err := New(ctx, Config{
		Rules: testRules(hotRule("terms", 100, 10*time.Second)), Publisher: out, Listen: []string{"127.0.0.1:0"}, Shards: 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("udp", a.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const packets, keys = 100, 10
	for i := range packets {
		var p strings.Builder
		p.WriteString(liveHead(uint64(i + 1)))
		for k := range keys {
			fmt.Fprintf(&p, "\nshop.terms.hot_param.q=%d:1|c", k)
		}
		send(t, conn, p.String())
	}
	cancel() // before Run has read anything
	if err := a.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if got := len(out.hot()); got != keys {
		t.Errorf("%d keys are hot, want all %d", got, keys)
	}
	s := a.Stats()
	if s.Decoder.Packets != packets || s.Decoder.Counts != packets*keys || s.Decoder.LostPackets != 0 {
		t.Errorf("decoder %+v", s.Decoder)
	}
	if s.Detector.Keys != keys || s.Detector.Hot != keys || s.Detector.Late != 0 || s.Detector.Memory == 0 {
		t.Errorf("detector %+v", s.Detector)
	}
}

func TestSourceCoolsKeysThatGoSilent(t *testing.T) {
	out := newRecorder()
	rule := hotRule("terms", 10, time.Second)
	rule.Hot[0].Hold, rule.Hot[0].CoolDown = 0, 0
	_, conn, end := start(t, Config{Rules: testRules(rule), Publisher: out, Shards: 1})
	send(t, conn, "shop.terms.hot_param.k:10|c")
	<-out.published // hot
	<-out.published // cool, when the window has passed
	if err := end(); err != nil {
		t.Fatal(err)
	}
	if len(out.hot()) != 0 || len(out.changes) != 2 {
		t.Fatalf("changes %+v", out.changes)
	}
	hot, cool := out.changes[0].Hot[0], out.changes[1].Cool[0]
	if lasted := cool.Until.Sub(hot.Since); lasted <= 900*time.Millisecond || lasted > 1100*time.Millisecond {
		t.Errorf("hot for %v by its own account, want its window", lasted)
	}
}

func TestSourceRefusesAnAddress(t *testing.T) {
	c := Config{Rules: testRules(hotRule("r", 1, time.Second)), Publisher: newRecorder(), Listen: []string{"nonsense"}}
	if a, err := New(t.Context(), c); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("New gives %v, %v; want an error about nonsense", a, err)
	}
}
