package spoe

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/cmd/internal/gateway/gatewaytest"
	"github.com/hotparam/hotparam/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

const (
	termRule  = `{id: terms, match: {route: "GET /search"}, by: [q], limit: {rate: 1/1h, burst: 3}}`
	roomRule  = `{id: room, match: {route: "GET /room"}, by: [id], limit: {concurrency: 1}}`
	byteRule  = `{id: bytes, match: {route: "GET /file"}, by: [name], count: bytes, limit: {rate: 1kB/1h, burst: 1kB}}`
	blockRule = `{id: items, match: {route: "GET /items"}, by: [id], limit: {rate: 100/s}, except: [{values: {id: bad}, action: block}]}`
	serveRule = `{id: teapots, match: {route: "GET /teapot"}, by: [id], limit: {rate: 1/1h, burst: 1, serve: {status: 418, body: short and stout}}}`
	planRule  = `{id: plans, match: {route: "GET /plan"}, by: ["header:x-plan", "ctx:tenant"], limit: {rate: 1/1h, burst: 1}}`
)

// fixture is a served door, and can start a HAProxy in front of it.
type fixture struct {
	*gatewaytest.Fixture
	t       *testing.T
	door    *Door
	program string // its path; the one of the PATH if empty
}

// serve serves a door of these rules, each written as {…}. change may be nil.
func serve(t *testing.T, change func(*gateway.DoorConfig), rules ...string) *fixture {
	t.Helper()
	return serveFixture(t, gatewaytest.New(t, gatewaytest.Rules(rules...), gateway.Config{}), change)
}

func serveFixture(t *testing.T, around *gatewaytest.Fixture, change func(*gateway.DoorConfig)) *fixture {
	t.Helper()
	c := gateway.DoorConfig{Decider: around.Decider, Tickets: around.Tickets, Log: around.Logger, Timeout: time.Second}
	if change != nil {
		change(&c)
	}
	door, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	around.Serve(door)
	return &fixture{Fixture: around, t: t, door: door}
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
	conn, err := net.Dial("tcp", f.Addr)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(gatewaytest.Patience))
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
	r := payloadReader{unread: f.payload}
	for len(r.unread) > 0 && !r.bad {
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
	r := payloadReader{unread: payload}
	for len(r.unread) > 0 {
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

// get returns a check message for a GET.
func get(uri string, more ...any) []byte {
	return message("check", append([]any{"method", appendString(nil, "GET"), "uri", appendString(nil, uri), "src", []byte{byte(kindIPv4), 192, 0, 2, 1}}, more...)...)
}

// raw returns a frame with any flags and length.
func raw(length uint32, rest ...byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, length), rest...)
}
