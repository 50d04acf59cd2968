package gateway

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
)

// Secure returns a connection that speaks TLS as a server. If the two cannot agree, it is
// counted and logged.
func (a *Admission) Secure(conn net.Conn, config *tls.Config) net.Conn {
	return &secure{Conn: tls.Server(conn, config), admission: a}
}

// SecureListener returns a listener whose connections are secure, or l itself without a
// configuration.
func (a *Admission) SecureListener(l net.Listener, config *tls.Config) net.Listener {
	if config == nil {
		return l
	}
	return &secureListener{l, a, config}
}

// Disagreed counts and logs a connection that ended by the error, if that says that TLS was not
// agreed on.
func (a *Admission) Disagreed(from net.Addr, err error) {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, net.ErrClosed} {
		if errors.Is(err, end) {
			return // the peer has gone by itself, as after a check whether the port is open, or the door ends
		}
	}
	a.Counters.NoTLS.Add(1)
	a.noTLS.Warn(admissionLog, a.Log, "closed a connection: TLS was not agreed on", "address", from.String(), "err", err)
}

type secureListener struct {
	net.Listener
	admission *Admission
	config    *tls.Config
}

// Accept returns the next connection. It does not wait for its handshake, which the first Read
// does.
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

// Read reads, after the handshake.
func (c *secure) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil && !c.Conn.ConnectionState().HandshakeComplete && !c.disagreed.Swap(true) {
		c.admission.Disagreed(c.RemoteAddr(), err)
	}
	return n, err
}
