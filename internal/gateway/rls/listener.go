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

// Read implements [net.Conn]. grpc bounds the time in which the preface has to come.
func (c *admitted) Read(b []byte) (int, error) {
	n, err := c.Admitted.Read(b)
	if c.read.Load() >= speaks {
		return n, err
	}
	if c.read.Add(int64(n)) >= speaks {
		c.Settle()
	} else if errors.Is(err, os.ErrDeadlineExceeded) {
		c.door.stats.SlowConnections.Add(1)
	}
	return n, err
}
