package gateway

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
)

// Secure returns a TLS server connection over conn. A failed handshake is counted and logged.
func (a *Admission) Secure(conn net.Conn, config *tls.Config) net.Conn {
	return &secure{Conn: tls.Server(conn, config), admission: a}
}

// SecureListener returns a listener whose connections use TLS. If config is nil, it returns l.
func (a *Admission) SecureListener(l net.Listener, config *tls.Config) net.Listener {
	if config == nil {
		return l
	}
	return &secureListener{l, a, config}
}

// Disagreed counts and logs the failure of a TLS handshake. It ignores errors by which the peer
// or the door closed the connection.
func (a *Admission) Disagreed(from net.Addr, err error) {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, net.ErrClosed} {
		if errors.Is(err, end) {
			return // the peer closed it, as a port check does, or the door is shutting down
		}
	}
	a.Counters.NoTLS.Add(1)
	a.noTLS.Warn(admissionLog, a.Log, "closed a connection: the TLS handshake failed", "address", from.String(), "err", err)
}

type secureListener struct {
	net.Listener
	admission *Admission
	config    *tls.Config
}

// Accept returns the next connection without waiting for its handshake. The first Read performs
// it.
func (l *secureListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.admission.Secure(conn, l.config), nil
}

type secure struct {
	*tls.Conn
	admission *Admission
	disagreed atomic.Bool
}

// Read reads from the connection. The first Read performs the handshake and reports its failure.
func (c *secure) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil && !c.Conn.ConnectionState().HandshakeComplete && !c.disagreed.Swap(true) {
		c.admission.Disagreed(c.RemoteAddr(), err)
	}
	return n, err
}
