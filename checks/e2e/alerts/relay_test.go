package alerts

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// countRelay forwards packets of counts from instances to an aggregator.
type countRelay struct {
	slow   []byte       // the name of an instance whose clock can be off
	lose   atomic.Int64 // of 100 packets
	offset atomic.Int64 // added to that clock, in nanoseconds
	in     net.PacketConn
}

func newCountRelay(t *testing.T, target, slow string) *countRelay {
	t.Helper()
	in, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	out, err := net.Dial("udp", target)
	if err != nil {
		t.Fatal(err)
	}
	r := &countRelay{in: in, slow: []byte(slow)}
	var work sync.WaitGroup
	work.Go(func() {
		buffer := make([]byte, 64<<10)
		for {
			n, _, err := in.ReadFrom(buffer)
			if err != nil {
				return
			}
			if rand.Int64N(100) >= r.lose.Load() {
				_, _ = out.Write(r.shift(buffer[:n])) // UDP: it may be lost
			}
		}
	})
	t.Cleanup(func() {
		in.Close()
		work.Wait()
		out.Close()
	})
	return r
}

func (r *countRelay) addr() string { return r.in.LocalAddr().String() }

// metaTimes are the sender's clock in the first line of a packet: when its counts begin, and
// when it was sent, in Unix nanoseconds.
var metaTimes = regexp.MustCompile(`,[tw]:(\d+)`)

func (r *countRelay) shift(packet []byte) []byte {
	offset := r.offset.Load()
	meta, lines, ok := bytes.Cut(packet, []byte("\n"))
	if offset == 0 || !ok || !bytes.Contains(meta, r.slow) {
		return packet
	}
	meta = metaTimes.ReplaceAllFunc(meta, func(field []byte) []byte {
		at, err := strconv.ParseInt(string(field[3:]), 10, 64)
		if err != nil {
			return field
		}
		return strconv.AppendInt(bytes.Clone(field[:3]), at+offset, 10)
	})
	return append(append(meta, '\n'), lines...)
}

// timeRelay forwards connections to a Redis. To who uses it their own clock is off, as Redis's
// time is shifted.
type timeRelay struct {
	offset atomic.Int64 // added to Redis's clock, in seconds
	in     net.Listener
	target string

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
}

func newTimeRelay(t *testing.T, target string) *timeRelay {
	t.Helper()
	in, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &timeRelay{in: in, target: target, conns: make(map[net.Conn]struct{})}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := in.Accept()
			if err != nil {
				return
			}
			work.Go(func() { r.serve(conn) })
		}
	})
	t.Cleanup(func() {
		in.Close()
		r.mu.Lock()
		r.closed = true
		for conn := range r.conns {
			conn.Close()
		}
		r.mu.Unlock()
		work.Wait()
	})
	return r
}

func (r *timeRelay) addr() string { return r.in.Addr().String() }

// serve forwards one connection until either side ends it.
func (r *timeRelay) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", r.target)
	if err != nil {
		return // Redis is away
	}
	defer server.Close()
	r.mu.Lock()
	closed := r.closed
	r.conns[client], r.conns[server] = struct{}{}, struct{}{}
	r.mu.Unlock()
	if closed {
		return
	}
	var requests sync.WaitGroup
	requests.Go(func() {
		_, _ = io.Copy(server, client) // either side may end at any time
		server.Close()
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			break
		}
		if _, err := client.Write(r.shift(buffer[:n])); err != nil {
			break
		}
	}
	client.Close()
	requests.Wait()
	r.mu.Lock()
	delete(r.conns, client)
	delete(r.conns, server)
	r.mu.Unlock()
}

// redisSeconds is a Unix time in seconds as Redis says it. No other text of ten digits is near
// the present time.
var redisSeconds = regexp.MustCompile(`\$10\r\n\d{10}\r\n`)

func (r *timeRelay) shift(answer []byte) []byte {
	offset := r.offset.Load()
	if offset == 0 {
		return answer
	}
	return redisSeconds.ReplaceAllFunc(answer, func(text []byte) []byte {
		at, err := strconv.ParseInt(string(text[5:15]), 10, 64)
		if err != nil || time.Since(time.Unix(at, 0)).Abs() > time.Hour {
			return text
		}
		return []byte("$10\r\n" + strconv.FormatInt(at+offset, 10) + "\r\n")
	})
}
