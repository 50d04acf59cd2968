package httpserve

import (
	"bytes"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/connlimit"
)

// listener wraps the connections of a limiter's listener.
type listener struct {
	net.Listener
	server *Server
}

// Accept returns the next connection. After an error http.Server waits, from 5 ms up to a
// second, and tries again.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c.(*connlimit.Conn), server: l.server}, nil
}

// conn is a connection that counts events that http.Server does not report.
type conn struct {
	*connlimit.Conn
	server *Server
	serves atomic.Bool  // a request is being served
	rests  atomic.Bool  // a request has ended, and nothing has arrived since
	within atomic.Int64 // deadline of reads in Unix seconds; 0 without one
	isSlow atomic.Bool  // counted as slow
}

// setServing records that a request begins or has ended.
func (c *conn) setServing(serves bool) {
	c.SetUsed(serves)
	c.serves.Store(serves)
	c.rests.Store(!serves)
}

// SetReadDeadline implements [net.Conn].
func (c *conn) SetReadDeadline(t time.Time) error {
	var unix int64
	if !t.IsZero() {
		unix = t.Unix()
	}
	c.within.Store(unix)
	return c.Conn.SetReadDeadline(t)
}

// Read implements [net.Conn]. It counts a peer that does not send its first request, or the rest
// of a request that it began, in time. http.Server also sets deadlines in the distant past, to
// end a read that is no longer needed.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.rests.Load() {
		c.rests.Store(false)
	}
	const longPast = 1 // as in http.Server
	if errors.Is(err, os.ErrDeadlineExceeded) && !c.rests.Load() && c.within.Load() > longPast && c.isSlow.CompareAndSwap(false, true) {
		c.server.slow.Add(1)
	}
	return n, err
}

// Write implements [net.Conn]. It counts responses outside of requests: http.Server sends them
// for requests that it cannot read, and does not report them.
func (c *conn) Write(b []byte) (int, error) {
	if !c.serves.Load() {
		switch {
		case bytes.HasPrefix(b, []byte("HTTP/1.1 431")):
			c.server.tooLarge.Add(1)
		case bytes.HasPrefix(b, []byte("HTTP/1.1 ")), bytes.HasPrefix(b, []byte("HTTP/1.0 ")):
			c.server.unreadable.Add(1)
		}
	}
	return c.Conn.Write(b)
}
