package rls

import (
	"errors"
	"net"
	"os"
	"sync/atomic"

	"github.com/hotparam/hotparam/cmd/internal/connlimit"
	"github.com/hotparam/hotparam/cmd/internal/gateway"
)

// settlingListener is a listener whose connections settle once their peer speaks HTTP/2.
type settlingListener struct {
	net.Listener
	door *Door
}

// Accept implements [net.Listener].
func (l settlingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &settlingConn{Conn: c.(*connlimit.Conn), door: l.door}, nil
}

// settleBytes is the number of bytes after which a connection settles. It is more than the HTTP/2
// preface and settings, so that the peer has made a call. grpc closes a connection that begins
// with anything else.
const settleBytes = 128

// settlingConn is a connection that settles after settleBytes. It counts bytes, since grpc does
// not report the connection of a call.
type settlingConn struct {
	*connlimit.Conn
	door *Door
	read atomic.Int64 // bytes read; not counted beyond settleBytes
}

// First bytes of a valid connection.
const (
	firstByteHTTP2 = 'P'  // of the preface "PRI * HTTP/2.0"
	firstByteTLS   = 0x16 // of a handshake record
)

// Read implements [net.Conn]. grpc sets the deadline for the preface.
func (c *settlingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	read := c.read.Load()
	if read >= settleBytes {
		return n, err
	}
	if first := c.door.firstByte(); read == 0 && n > 0 && b[0] != first {
		c.door.Closed(gateway.Invalid, "")
		c.read.Add(1)
		return n, err // grpc closes the connection
	}
	if c.read.Add(int64(n)) >= settleBytes {
		c.SetUsed(true)
	} else if errors.Is(err, os.ErrDeadlineExceeded) {
		c.door.Closed(gateway.Slow, "")
	}
	return n, err
}

// firstByte returns the first byte of a valid connection.
func (d *Door) firstByte() byte {
	if d.TLS != nil {
		return firstByteTLS
	}
	return firstByteHTTP2
}
