package e2e

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// guardAlone are the rules of a guard without Redis.
const guardAlone = `namespace: shop
aggregator: {redis: "redis://127.0.0.1:1"}
rules:
  - {id: search, match: {route: "GET /search"}, by: [q], limit: {rate: 1/1h, burst: 1}, block: {q: bad}}
`

// slowPeer sends its beginning at once, and then the rest over and over, a byte at a time.
type slowPeer struct {
	name, door  string
	begin, rest []byte
	metric      string // metric that counts the peer
}

func slowPeers() []slowPeer {
	headers := []byte("GET /v1/openapi.json HTTP/1.1\r\nHost: a\r\nX-A: ")
	const closed = `hotparam_guard_closed_connections_total{door="%s",reason="slow"}`
	of := func(door string) string { return strings.Replace(closed, "%s", door, 1) }
	return []slowPeer{
		{"headers", "auth", headers, []byte("x"), of("auth")},
		{"silence", "auth", nil, nil, of("auth")},
		{"headers", "check", headers, []byte("x"), of("check")},
		{"a body", "check", []byte("POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"), []byte(" "), of("check")},
		{"a chunk", "check", []byte("POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n"), []byte(" "), of("check")},
		{"a hello", "spoe", spoeHello()[:20], []byte("x"), of("spoe")},
		{"a frame", "spoe", append(spoeHello(), 0, 0, 0x20, 0, 3), []byte{0}, of("spoe")},
		{"silence", "spoe", nil, nil, of("spoe")},
		{"the preface", "rls", []byte("PRI * HTTP/2.0\r\n"), nil, of("rls")},
		{"a message", "rls", slowCall("/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"), dataFrame(0), `hotparam_guard_faults_total{door="rls",reason="slow"}`},
		{"a question of health", "rls", slowCall("/grpc.health.v1.Health/Check"), dataFrame(0), `hotparam_guard_faults_total{door="rls",reason="slow"}`},
	}
}

// slowCall returns the beginning of an HTTP/2 connection and of a gRPC call whose message has 1,000
// bytes.
func slowCall(method string) []byte {
	b := append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), http2Frame(4, 0, 0, nil)...)
	var headers []byte
	for _, h := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", method}, {":authority", "a"},
		{"content-type", "application/grpc"}, {"te", "trailers"},
	} {
		headers = spoeText(spoeText(append(headers, 0), h[0]), h[1]) // HPACK's literals without an index
	}
	b = append(b, http2Frame(1, 4, 1, headers)...)
	return append(b, dataFrame(0, 0, 0, 3, 0xe8)...)
}

// dataFrame returns a DATA frame of a stream.
func dataFrame(data ...byte) []byte { return http2Frame(0, 0, 1, data) }

func http2Frame(kind, flags, stream byte, payload []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))[1:]
	return append(append(b, kind, flags, 0, 0, 0, stream), payload...)
}

// Each door cuts off peers that send a byte at a time, within a bounded time, and counts them by
// reason. It still answers others in that time.
func TestSlowPeersOfAGuard(t *testing.T) {
	t.Parallel()
	const each = 10
	const bound = 10 * time.Second // for a body; headers, frames and calls have 5
	g := startGuardOfAll(t, commands(t).hotparam, guardAlone)
	var slow sync.WaitGroup
	defer slow.Wait()
	wanted := make(map[string]int64)
	var left atomic.Int64
	begin := time.Now()
	for _, p := range slowPeers() {
		wanted[p.metric] += each
		for range each {
			left.Add(1)
			slow.Go(func() {
				defer left.Add(-1)
				if took, err := p.send(g.addr(p.door)); err != nil || took > bound+busyMachine {
					t.Errorf("%s, %s: %v after %v, want it to be cut off within %v", p.door, p.name, err, took, bound)
				}
			})
		}
	}
	for ; left.Load() > 0; time.Sleep(200 * time.Millisecond) {
		for _, door := range doorNames {
			asked := time.Now()
			if status, err := g.askDoor(door, "/search?q=bad"); status != 403 {
				t.Errorf("%s: another caller got %d, %v", door, status, err)
			}
			if took := time.Since(asked); took > busyMachine {
				t.Errorf("%s: another caller was answered after %v", door, took)
			}
		}
		if time.Since(begin) > 2*bound {
			t.Fatalf("%d are there still", left.Load())
		}
	}
	t.Logf("%d were cut off within %v", len(slowPeers())*each, time.Since(begin).Round(time.Millisecond))
	for metric, want := range wanted {
		within(t, patience, metric, func() bool { return g.count(metric) >= want })
		if n := g.count(metric); n != want {
			t.Errorf("%s %d, want %d", metric, n, want)
		}
	}
}

// send sends until the guard ends the connection or the call.
func (p *slowPeer) send(addr string) (took time.Duration, err error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	begin := time.Now()
	if _, err := conn.Write(p.begin); err != nil {
		return 0, err
	}
	for answer := make([]byte, 4<<10); ; {
		_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		n, err := conn.Read(answer)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) || n > 0 && !isTrailer(answer[:n]):
		case time.Since(begin) > time.Minute:
			return 0, errors.New("still there")
		default:
			return time.Since(begin), nil
		}
		_, _ = conn.Write(p.rest) // the next read shows whether the connection has ended
	}
}

// isTrailer reports whether frames of HTTP/2 end stream 1.
func isTrailer(b []byte) bool {
	for len(b) >= 9 {
		n := int(b[0])<<16 | int(b[1])<<8 | int(b[2])
		if b[8] == 1 && (b[3] == 1 && b[4]&1 != 0 || b[3] == 3) {
			return true
		}
		b = b[min(len(b), 9+n):]
	}
	return false
}
