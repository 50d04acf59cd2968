package rls

import (
	"errors"
	"net"
	"os"
	"sync/atomic"

	"github.com/hotparam/hotparam/internal/gateway"
)

// speakers is a listener of connections that settle once they speak HTTP/2.
type speakers struct {
	net.Listener
	door *Door
}

// Accept implements [net.Listener].
func (l speakers) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &speaker{Conn: c, door: l.door}, nil
}

// speaks is how many bytes a peer has sent that is none who only connects: the preface of HTTP/2
// and its settings have fewer, and grpc closes a connection that begins with anything else.
const speaks = 128

// speaker is a connection that settles by the bytes that have come. The door sees calls, and
// not on which connection they are.
type speaker struct {
	net.Conn
	door *Door
	read atomic.Int64 // bytes; not counted beyond speaks
}

// The first byte of what a peer may begin with.
const (
	beginsHTTP2 = 'P'  // of "PRI * HTTP/2.0"
	beginsTLS   = 0x16 // a handshake
)

// Read implements [net.Conn]. grpc bounds the time in which the preface has to come.
func (c *speaker) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	read := c.read.Load()
	if read >= speaks {
		return n, err
	}
	if begins := c.door.begins(); read == 0 && n > 0 && b[0] != begins {
		c.door.stats.Nonsense.Add(1)
		c.read.Add(1)
		return n, err // grpc closes it once it has seen enough
	}
	if c.read.Add(int64(n)) >= speaks {
		gateway.Settle(c.Conn)
	} else if errors.Is(err, os.ErrDeadlineExceeded) {
		c.door.stats.SlowConnections.Add(1)
	}
	return n, err
}

// begins returns the first byte that a peer sends.
func (d *Door) begins() byte {
	if d.config.TLS != nil {
		return beginsTLS
	}
	return beginsHTTP2
}
