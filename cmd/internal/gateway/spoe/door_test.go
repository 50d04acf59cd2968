package spoe

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/cmd/internal/gateway/gatewaytest"
)

func TestNewRefuses(t *testing.T) {
	if _, err := New(gateway.DoorConfig{}); err == nil || !strings.Contains(err.Error(), "needs a Decider") {
		t.Error(err)
	}
}

func TestDoor(t *testing.T) {
	t.Parallel()
	f := serve(t, nil, termRule, roomRule, byteRule, planRule)
	p := f.connect()
	for i := range 3 {
		got := p.ask(uint64(i), get("/search?q=phone"))
		if got["allowed"] != "true" || got["status"] != "" || got["rule"] != "terms" || got["ticket"] != "" {
			t.Fatalf("request %d: %v", i, got)
		}
	}
	got := p.ask(1000, get("/search?q=phone"))
	if got["allowed"] != "false" || got["status"] != "429" || got["reason"] != "limited" || got["rule"] != "terms" ||
		got["retry_after"] != "3600" || got["content_type"] != "application/problem+json" || !strings.HasSuffix(got["body"], "}") {
		t.Errorf("over the limit: %v", got)
	}
	if got := p.ask(1<<40, get("/other")); len(got) != 1 || got["allowed"] != "true" {
		t.Errorf("no rule: %v", got)
	}
	plan := func() []byte {
		return get("/plan", "header.X-Plan", appendString(nil, "free"), "ctx.tenant", appendString(nil, "7"))
	}
	if got := p.ask(7, plan(), plan()); got["allowed"] != "false" {
		t.Errorf("two checks in a frame: %v", got)
	}

	// A request with hold announces that its end will be reported. The one with id 22 does not.
	hold := appendBool(nil, true)
	first := p.ask(20, get("/room?id=a", "hold", hold))
	if first["allowed"] != "true" || first["ticket"] == "" {
		t.Fatalf("%v", first)
	}
	if got := p.ask(21, get("/room?id=a", "hold", hold)); got["status"] != "503" || got["reason"] != "busy" {
		t.Errorf("no room: %v", got)
	}
	end := message("done", "ticket", appendString(nil, first["ticket"]), "bytes", []byte{byte(kindNull)})
	if got := p.ask(20, end); got["ended"] != "true" {
		t.Errorf("the end: %v", got)
	}
	if got := p.ask(20, end); got["ended"] != "false" {
		t.Errorf("the same again: %v", got)
	}
	for range 2 {
		if got := p.ask(22, get("/room?id=a")); got["allowed"] != "true" || got["ticket"] != "" {
			t.Errorf("without hold: %v", got)
		}
	}
	file := p.ask(30, get("/file?name=a", "hold", hold))
	p.ask(30, message("done", "ticket", appendString(nil, file["ticket"]), "bytes", appendString(nil, "5000")))
	if got := p.ask(31, get("/file?name=a", "hold", hold)); got["allowed"] != "false" {
		t.Errorf("a file of five times the limit was sent: %v", got)
	}

	// A message that is not understood gets an ACK without variables, and is logged once.
	for _, m := range [][]byte{
		message("check", "method", appendString(nil, "GET")), message("done"), message("other", "a", hold), nil,
		[]byte("\x05check\x01"), message("done", "ticket", appendString(nil, "unknown")),
	} {
		if got := p.ask(40, m); len(got) > 0 {
			t.Errorf("%q: %v", m, got)
		}
	}
	s, ends := f.Figures(), f.Tickets.Stats()
	if s.Passed != 9 || s.Refused != 4 || s.Connections != 1 || ends.Ended != 2 || ends.Repeated != 1 ||
		s.Faults[gateway.NoTicket] != 2 || s.Faults[gateway.Incomplete] != 2 || s.Faults[gateway.UnknownMessage] != 1 || s.Faults[gateway.Invalid] != 1 || s.Closed[gateway.Invalid] != 0 {
		t.Errorf("%+v, %+v", s, ends)
	}
	if n := strings.Count(f.Log.String(), "lacks the request's method or URI"); n != 1 {
		t.Errorf("told %d times; the log:\n%s", n, f.Log)
	}
}

// A small frame has the answer without its body.
func TestSmallFrame(t *testing.T) {
	t.Parallel()
	f := serve(t, nil, termRule)
	p := f.dial()
	p.send(typeHAProxyHello, 0, 0, helloPayload(minFrameSize, false))
	p.receive()
	for range 3 {
		p.ask(1, get("/search?q=phone"))
	}
	if got := p.ask(1, get("/search?q=phone")); got["status"] != "429" || got["retry_after"] != "3600" || got["body"] != "" {
		t.Errorf("%v", got)
	}
	if s := f.Figures(); s.Faults[gateway.Cut] != 1 {
		t.Errorf("%+v", s)
	}
	p.conn.Write(raw(minFrameSize+1, make([]byte, 9)...))
	if s, _ := p.ended(); s != statusTooBig {
		t.Errorf("%v", s)
	}
}

func TestHandshakes(t *testing.T) {
	t.Parallel()
	f := serve(t, nil, termRule)
	f.Stop()
	f.door.frameSize = 1000
	f.ServeAgain(f.door)
	p := f.dial()
	p.send(typeHAProxyHello, 0, 0, helloPayload(16380, true))
	hello := p.receive()
	if hello.kind != typeAgentHello || !bytes.Contains(hello.payload, appendUint32([]byte("max-frame-size"), 1000)) || !bytes.Contains(hello.payload, []byte("\x08\x0apipelining")) {
		t.Errorf("%d %q", hello.kind, hello.payload)
	}
	if _, err := p.in.ReadByte(); err != io.EOF {
		t.Errorf("after a health check: %v", err)
	}

	for name, c := range map[string]struct {
		bytes []byte
		want  status
	}{
		"a notify at first":   {framed(typeNotify, get("/")), statusInvalid},
		"an empty frame":      {raw(0), statusInvalid},
		"a frame of 4 GiB":    {raw(1<<32-1, 1), statusTooBig},
		"HTTP":                {[]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), statusTooBig},
		"a small frame size":  {framed(typeHAProxyHello, helloPayload(255, false)), statusBadFrameSize},
		"no hello at all":     {framed(typeHAProxyHello, nil), statusNoVersion},
		"a fragment of hello": {raw(7, 1, 0, 0, 0, 0, 0, 0), statusFragmentation},
	} {
		p := f.dial()
		p.conn.Write(c.bytes)
		if s, message := p.ended(); s != c.want || message != c.want.String() {
			t.Errorf("%s: %v (%s), want %v", name, s, message, c.want)
		}
	}
	p = f.connect()
	p.conn.Write(raw(8, 3, 0, 0, 0, 0, 1, 1, 0))
	if s, _ := p.ended(); s != statusFragmentation {
		t.Errorf("a fragment of a notify: %v", s)
	}
	p = f.connect()
	p.send(99, 0, 0, nil) // unknown frames are skipped
	p.send(typeHAProxyDisconnect, 0, 0, nil)
	if s, _ := p.ended(); s != statusNormal {
		t.Errorf("HAProxy disconnects: %v", s)
	}
	want := map[gateway.Reason]int64{
		"idle": 0, "full": 0, "not_allowed": 0, "tls": 0, gateway.TooLarge: 2, gateway.Fragmented: 2, gateway.Handshake: 2, gateway.Invalid: 2, gateway.Slow: 0,
	}
	if s := f.Figures(); f.door.healthchecks.Load() != 1 || !maps.Equal(s.Closed, want) {
		t.Errorf("%+v", s)
	}
}

// framed returns the bytes of a frame.
func framed(kind frameType, payload []byte) []byte {
	b := append(appendHead(nil, kind, 0, 0), payload...)
	putLength(b)
	return b
}

// A peer that sends nothing, or a frame byte by byte, does not keep a connection.
func TestSlowPeers(t *testing.T) {
	t.Parallel()
	f := serve(t, nil, termRule)
	f.Stop()
	f.door.helloWithin, f.door.frameWithin = 50*time.Millisecond, 100*time.Millisecond
	f.ServeAgain(f.door)
	if s, _ := f.dial().ended(); s != statusTimeout {
		t.Errorf("silence: %v", s)
	}
	p := f.dial()
	p.conn.Write([]byte{0, 0, 0})
	if s, _ := p.ended(); s != statusTimeout {
		t.Errorf("half a length: %v", s)
	}
	f.Stop()
	f.door.helloWithin, f.door.frameWithin, f.door.idle = defaultHello, defaultFrame, 50*time.Millisecond // this peer is not slow
	f.ServeAgain(f.door)
	if s, _ := f.connect().ended(); s != statusNormal {
		t.Errorf("idle: %v", s)
	}
	f.Await("the end of all connections", func() bool { return f.Figures().Connections == 0 })
	if s := f.Figures(); s.Closed[gateway.Slow] != 2 {
		t.Errorf("%+v", s)
	}
}

func TestBoundsOfConnections(t *testing.T) {
	t.Parallel()
	f := serve(t, func(c *gateway.DoorConfig) {
		c.MaxConnections = 2
		c.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	}, termRule)
	one, two := f.connect(), f.connect()
	full := f.dial()
	if _, err := full.in.ReadByte(); err == nil {
		t.Error("a third connection was served")
	}
	one.conn.Close()
	f.Await("room", func() bool { return f.Figures().Connections == 1 })
	silent := f.dial()
	f.Await("one that is silent", func() bool { return f.Figures().Connections == 2 })
	f.connect()
	if _, err := silent.in.ReadByte(); err == nil {
		t.Error("one that says nothing kept its place")
	}
	if got := two.ask(1, get("/search?q=phone")); got["allowed"] != "true" {
		t.Errorf("%v", got)
	}
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	if conn, err := dialer.Dial("tcp", f.Addr); err != nil {
		t.Log("no second address of this machine:", err)
	} else if _, err := conn.Read(make([]byte, 1)); err == nil || f.Closed("not_allowed") != 1 {
		t.Errorf("another address: %v, %+v", err, f.Figures())
	}
	if s := f.Figures(); s.Closed["full"] != 1 || s.Closed["idle"] != 1 {
		t.Errorf("%+v", s)
	}
}

// Requests sent before the door drains are still answered.
func TestDrain(t *testing.T) {
	t.Parallel()
	f := serve(t, nil, termRule)
	p, silent := f.connect(), f.dial()
	const n = 50
	for i := range n {
		p.send(typeNotify, uint64(i), 1, get("/search?q=phone"))
	}
	f.Await("all requests", func() bool { return f.Figures().Passed+f.Figures().Refused == n })
	f.Stop()
	seen := make(map[uint64]bool)
	for range n {
		seen[p.receive().stream] = true
	}
	if len(seen) != n {
		t.Errorf("%d requests were answered", len(seen))
	}
	if s, _ := p.ended(); s != statusNormal {
		t.Errorf("%v", s)
	}
	if s, _ := silent.ended(); s != statusNormal {
		t.Errorf("%v", s)
	}
	if _, err := net.Dial("tcp", f.Addr); err == nil {
		t.Error("the door is still open")
	}
}

// A peer that sends requests without reading the answers delays neither other peers nor the end.
func TestPeerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	f := serve(t, nil, termRule)
	f.Stop()
	f.door.writeWithin = 300 * time.Millisecond
	f.ServeAgain(f.door)
	p := f.connect()
	payload := framed(typeNotify, bytes.Repeat(get("/search?q=phone"), 8))
	go func() {
		for {
			if _, err := p.conn.Write(payload); err != nil {
				return
			}
		}
	}()
	other := f.connect()
	if got := other.ask(1, get("/search?q=other")); got["allowed"] != "true" {
		t.Errorf("%v", got)
	}
	f.Await("the end of the connection", func() bool { return f.Figures().Connections == 1 })
	if s := f.Figures(); s.Closed[gateway.Slow] != 1 {
		t.Errorf("%+v", s)
	}
}

// Peers that do not read their answers do not occupy the few shared places for decisions.
func TestPeersThatDoNotReadKeepNoPlaces(t *testing.T) {
	t.Parallel()
	f := serve(t, nil, termRule)
	f.Stop()
	f.door.slots, f.door.writeWithin = make(chan struct{}, 2), time.Minute
	f.ServeAgain(f.door)
	p := f.connect()
	payload := framed(typeNotify, bytes.Repeat(get("/search?q=phone"), 8))
	stuck := make(chan struct{})
	go func() {
		defer close(stuck)
		for {
			_ = p.conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
			if _, err := p.conn.Write(payload); err != nil {
				return
			}
		}
	}()
	<-stuck // it is not read any more, as its answers are not
	if got := f.connect().ask(1, get("/search?q=other")); got["allowed"] != "true" {
		t.Errorf("%v", got)
	}
	p.conn.Close()
}

// A broken listener ends Serve.
func TestServeEnds(t *testing.T) {
	f := serve(t, nil, termRule)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := f.door.Serve(context.Background(), l); err == nil {
		t.Error("a closed listener was served")
	}
}

// A door with TLS serves peers that use it, and drains.
func TestTLS(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(nil) // for its certificate
	defer server.Close()
	f := serve(t, func(c *gateway.DoorConfig) { c.TLS = &tls.Config{Certificates: server.TLS.Certificates} }, termRule)
	conn, err := tls.Dial("tcp", f.Addr, &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(gatewaytest.Patience))
	p := &peer{t, conn, bufio.NewReader(conn)}
	p.send(typeHAProxyHello, 0, 0, helloPayload(16380, false))
	p.receive()
	if got := p.ask(1, get("/search?q=phone")); got["allowed"] != "true" {
		t.Errorf("%v", got)
	}
	f.Stop()
	if s, _ := p.ended(); s != statusNormal {
		t.Errorf("%v", s)
	}
}
