package connlimit

import (
	"crypto/tls"
	"net"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/base"
)

// Conn is a connection that is counted as open until it is closed.
type Conn struct {
	net.Conn           // TLS if the limiter has it
	Reserved bool      // accepted beyond Config.Max
	raw      net.Conn  // below TLS
	limiter  *Limiter  // counts the connection
	peer     base.Peer // peer at the other end
	number   uint64    // number in the order of acceptance

	failed atomic.Bool // the TLS handshake failed, and is counted

	// limiter.mu guards the rest.
	used  bool
	since time.Time // time at which the connection was accepted or last used
}

func newConn(l *Limiter, raw net.Conn) *Conn {
	c := &Conn{Conn: raw, raw: raw, limiter: l, peer: base.PeerOf(raw), since: time.Now()}
	if l.config.TLS != nil {
		c.Conn = tls.Server(raw, l.config.TLS)
	}
	return c
}

// SetUsed records whether the connection is in use, for example while a request is served, or
// idle. A connection is idle until the first call.
func (c *Conn) SetUsed(used bool) {
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	c.used, c.since = used, time.Now()
}

// Read reads from the connection. The first Read performs the TLS handshake and reports its
// failure.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil {
		return n, nil
	}
	if secure, ok := c.Conn.(*tls.Conn); ok && !secure.ConnectionState().HandshakeComplete && !c.failed.Swap(true) {
		c.limiter.HandshakeFailed(c.RemoteAddr(), err)
	}
	return n, err
}

// Close closes the connection.
func (c *Conn) Close() error {
	err := c.Conn.Close()
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	delete(c.limiter.open, c)
	c.limiter.keepSpares()
	return err
}

// Abort closes the connection without notice to the peer, even if a write is blocked. Its reader
// then returns and calls Close. A nil Conn is ignored.
func (c *Conn) Abort() {
	if c != nil {
		_ = c.raw.Close()
	}
}
