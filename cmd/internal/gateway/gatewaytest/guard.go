package gatewaytest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/cmd/internal/gateway"
)

// CountingGuard is a Hotparam with the counts that it has sent.
type CountingGuard struct {
	*hotparam.Hotparam
	conn  net.PacketConn
	close sync.Once
	done  chan struct{}
	keys  map[string]int64
}

// Open opens a Hotparam with these rules, written as in a file below "rules:" (see [Rules]),
// until the test ends. It has no Redis, so no key becomes hot over all instances.
func Open(tb testing.TB, rules string, opts ...hotparam.Option) *CountingGuard {
	tb.Helper()
	conn, err := new(net.ListenConfig).ListenPacket(tb.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	g := &CountingGuard{conn: conn, done: make(chan struct{}), keys: make(map[string]int64)}
	go g.receive()
	path := filepath.Join(tb.TempDir(), "hotparam.yaml")
	text := fmt.Sprintf("namespace: suite\naggregator: {redis: \"redis://127.0.0.1:1\"}\nstatsd: {addresses: [%q]}\nrules:\n%s", conn.LocalAddr(), rules)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	opts = append([]hotparam.Option{hotparam.WithLogger(slog.New(slog.DiscardHandler)), gateway.WithContext()}, opts...)
	if g.Hotparam, err = hotparam.Open(tb.Context(), path, opts...); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { g.Counted(tb) })
	return g
}

// Decider returns a decider of the Hotparam, with the other fields of c.
func (g *CountingGuard) Decider(tb testing.TB, c gateway.Config) *gateway.Decider {
	tb.Helper()
	c.Hotparam = g.Hotparam
	d, err := gateway.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// Counted closes the Hotparam and returns the count of each key, in the form in which keys are
// sent.
func (g *CountingGuard) Counted(tb testing.TB) map[string]int64 {
	tb.Helper()
	g.close.Do(func() {
		if err := g.Close(context.Background()); err != nil {
			tb.Errorf("close: %v", err)
		}
		// The receiver ends at a datagram from itself, which arrives after all that Close sent.
		if _, err := g.conn.WriteTo([]byte(lastPacket), g.conn.LocalAddr()); err != nil {
			tb.Errorf("close: %v", err)
		}
		<-g.done
		g.conn.Close()
	})
	return g.keys
}

const lastPacket = "the end"

func (g *CountingGuard) receive() {
	defer close(g.done)
	buf := make([]byte, 64<<10)
	for {
		n, _, err := g.conn.ReadFrom(buf)
		if err != nil || string(buf[:n]) == lastPacket {
			return
		}
		for line := range bytes.Lines(buf[:n]) {
			g.add(bytes.TrimRight(line, "\n"))
		}
	}
}

// add adds a line of StatsD, "suite.hot_param.KEY:N|c", to the counts. It ignores lines of any
// other form.
func (g *CountingGuard) add(line []byte) {
	name, value, ok := bytes.Cut(line, []byte(":"))
	_, key, found := bytes.Cut(name, []byte(".hot_param."))
	number, _, counter := bytes.Cut(value, []byte("|c"))
	n, err := strconv.ParseInt(string(number), 10, 64)
	if ok && found && counter && err == nil {
		g.keys[string(key)] += n
	}
}
