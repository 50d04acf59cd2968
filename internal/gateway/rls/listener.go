package rls

import (
	"errors"
	"net"
	"os"
	"sync/atomic"

	"github.com/hotparam/hotparam/internal/gateway"
)

// admitting is a listener that closes connections from addresses that are not allowed, and
// those that are too many. Unlike a limit that has them wait, it keeps no descriptors of files
// in the queue of the kernel.
type admitting struct {
	net.Listener
	door *Door
}

// Accept returns the next connection that may stay.
func (l admitting) Accept() (net.Conn, error) {
	d := l.door
	for {
		n, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c, result := d.admission.Admit(n)
		switch result {
		case gateway.AdmitOK:
			return &admitted{Admitted: c, door: d}, nil
		case gateway.AdmitStranger:
			d.complain.add(complainStranger, "closed a connection from an address that is not allowed", "address", n.RemoteAddr().String())
		case gateway.AdmitFull:
			d.complain.add(complainFull, "closed a connection: there are too many", "connections", d.config.MaxConnections)
		}
	}
}

// speaks is how many bytes a peer has sent that is none who only connects: the preface of HTTP/2
// and its settings have fewer, and grpc closes a connection that begins with anything else.
const speaks = 128

// admitted is a connection that settles by the bytes that have come. The door sees calls, and
// not on which connection they are.
type admitted struct {
	*gateway.Admitted
	door *Door
	read atomic.Int64 // bytes; not counted beyond speaks
}

// The first byte of what a peer may begin with.
const (
	beginsHTTP2 = 'P'  // of "PRI * HTTP/2.0"
	beginsTLS   = 0x16 // a handshake
)

// Read implements [net.Conn]. grpc bounds the time in which the preface has to come.
func (c *admitted) Read(b []byte) (int, error) {
	n, err := c.Admitted.Read(b)
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
		c.Settle()
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
