package spoe

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/attach"
	"github.com/hotparam/hotparam/internal/gateway"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/middleware"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// longest is how long a test waits for what should be near.
const longest = 20 * time.Second

const (
	termRule  = `{id: terms, match: {route: "GET /search"}, by: [q], limit: {rate: 1/1h, burst: 3}}`
	roomRule  = `{id: room, match: {route: "GET /room"}, by: [id], limit: {concurrency: 1}}`
	byteRule  = `{id: bytes, match: {route: "GET /file"}, by: [name], count: bytes, limit: {rate: 1kB/1h, burst: 1kB}}`
	blockRule = `{id: items, match: {route: "GET /items"}, by: [id], limit: {rate: 100/s}, except: [{values: {id: bad}, action: block}]}`
	serveRule = `{id: teapots, match: {route: "GET /teapot"}, by: [id], limit: {rate: 1/1h, burst: 1, serve: {status: 418, body: short and stout}}}`
	planRule  = `{id: plans, match: {route: "GET /plan"}, by: ["header:x-plan", "ctx:tenant"], limit: {rate: 1/1h, burst: 1}}`
)

// fixture is a door that serves, and what belongs to it.
type fixture struct {
	t       *testing.T
	door    *Door
	tickets *gateway.Tickets
	log     *testenv.Log
	addr    string
	stop    func()
	program testenv.HAProxyProgram
}

// serve serves a door by these rules, on this kind of network. change may be nil.
func serve(t *testing.T, change func(*Config), rules ...string) *fixture {
	t.Helper()
	f := &fixture{t: t, log: new(testenv.Log), addr: "127.0.0.1:0"}
	log := slog.New(slog.NewTextHandler(f.log, nil))
	file := filepath.Join(t.TempDir(), "hotparam.yaml")
	nowhere := testenv.FreePort(t)
	text := fmt.Sprintf("namespace: shop\naggregator: {redis: \"redis://127.0.0.1:%d\"}\nstatsd: {addresses: [\"127.0.0.1:%d\"]}\nrules:\n  - %s\n", nowhere, nowhere, strings.Join(rules, "\n  - "))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := attach.Open(t.Context(), file, attach.WithLogger(log), gateway.WithContext(), attach.WithMiddleware(middleware.WithHeaders()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close(context.Background()) })
	decider, err := gateway.New(gateway.Config{Hotparam: h, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	f.tickets = gateway.NewTickets(gateway.TicketsConfig{Log: log})
	testenv.Running(t, f.tickets.Run)
	c := Config{Decider: decider, Tickets: f.tickets, Log: log, Timeout: time.Second}
	if change != nil {
		change(&c)
	}
	if f.door, err = New(c); err != nil {
		t.Fatal(err)
	}
	f.listen()
	return f
}

// listen serves at f.addr.
func (f *fixture) listen() {
	l, err := net.Listen("tcp", f.addr)
	if err != nil {
		f.t.Fatal(err)
	}
	f.addr = l.Addr().String()
	f.stop = testenv.Running(f.t, func(ctx context.Context) error { return f.door.Serve(ctx, l) })
}

// await waits until a condition holds.
func (f *fixture) await(what string, condition func() bool) {
	f.t.Helper()
	for end := time.Now().Add(longest); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("%s: not within %v; %+v; the log:\n%s", what, longest, f.door.Stats(), f.log)
		}
	}
}

// peer is HAProxy's side of a connection.
type peer struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

// dial connects without a handshake.
func (f *fixture) dial() *peer {
	f.t.Helper()
	conn, err := net.Dial("tcp", f.addr)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(longest))
	return &peer{f.t, conn, bufio.NewReader(conn)}
}

// connect connects and shakes hands.
func (f *fixture) connect() *peer {
	f.t.Helper()
	p := f.dial()
	p.send(typeHAProxyHello, 0, 0, helloPayload(16380, false))
	if got := p.receive(); got.kind != typeAgentHello {
		f.t.Fatalf("the answer to hello is a frame %d", got.kind)
	}
	return p
}

func helloPayload(frameSize uint32, healthcheck bool) []byte {
	b := appendString(appendText(nil, "supported-versions"), "2.0")
	b = appendUint32(appendText(b, "max-frame-size"), frameSize)
	b = appendString(appendText(b, "capabilities"), "pipelining,async")
	if healthcheck {
		b = appendBool(appendText(b, "healthcheck"), true)
	}
	return b
}

func (p *peer) send(kind frameType, stream, id uint64, payload []byte) {
	p.t.Helper()
	b := append(appendHead(nil, kind, stream, id), payload...)
	putLength(b)
	if _, err := p.conn.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

// receive returns the next frame.
func (p *peer) receive() frame {
	p.t.Helper()
	b, err := readFrame(p.in, nil, 1<<20)
	if err != nil {
		p.t.Fatal(err)
	}
	f, err := parseFrame(b)
	if err != nil {
		p.t.Fatal(err)
	}
	return f
}

// ended waits for the door's disconnect, and the end of the connection.
func (p *peer) ended() (s status, message string) {
	p.t.Helper()
	f := p.receive()
	if f.kind != typeAgentDisconnect {
		p.t.Fatalf("a frame %d came, want a disconnect", f.kind)
	}
	r := reader{rest: f.payload}
	for len(r.rest) > 0 && !r.bad {
		name, v := string(r.text()), r.value()
		switch name {
		case "status-code":
			s = status(v.number)
		case "message":
			message = v.text()
		}
	}
	if _, err := p.in.ReadByte(); err != io.EOF {
		p.t.Errorf("after the disconnect: %v", err)
	}
	return s, message
}

// ask sends messages in one NOTIFY and returns the variables of its ACK.
func (p *peer) ask(stream uint64, messages ...[]byte) map[string]string {
	p.t.Helper()
	var payload []byte
	for _, m := range messages {
		payload = append(payload, m...)
	}
	p.send(typeNotify, stream, 1, payload)
	f := p.receive()
	if f.kind != typeAck || f.stream != stream || f.id != 1 {
		p.t.Fatalf("a frame %d of %d/%d came, want the ACK of %d", f.kind, f.stream, f.id, stream)
	}
	return variablesOf(p.t, f.payload)
}

func variablesOf(t *testing.T, payload []byte) map[string]string {
	t.Helper()
	all := make(map[string]string)
	r := reader{rest: payload}
	for len(r.rest) > 0 {
		action, n, scope := r.byte(), r.byte(), r.byte()
		name := string(r.text())
		v := r.value()
		if r.bad || action != actionSetVar || n != 3 || scope != scopeTransaction {
			t.Fatalf("action %d of %d arguments, scope %d, name %q, bad %v", action, n, scope, name, r.bad)
		}
		all[name] = v.text()
	}
	return all
}

// get is a check of a GET.
func get(uri string, more ...any) []byte {
	return message("check", append([]any{"method", appendString(nil, "GET"), "uri", appendString(nil, uri), "src", []byte{byte(kindIPv4), 192, 0, 2, 1}}, more...)...)
}

// raw is a frame with any flags and length.
func raw(length uint32, rest ...byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, length), rest...)
}
