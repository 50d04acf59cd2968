package gateway

import (
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/loglimit"
)

// ConnCounters count the connections of a door. N is int64 or [atomic.Int64].
type ConnCounters[N any] struct {
	Connections N // that are open now
	Accepted    N // that have ever been
	Full        N // that were closed at once, since there were too many
	Strangers   N // that were closed at once, since their address may not connect
}

// Admission decides which connections a door has. Its fields must not change while it is used.
type Admission struct {
	Peers    Peers
	Max      int // how many may be open at a time; 0 means no bound
	Counters *ConnCounters[atomic.Int64]
	Log      *slog.Logger

	full, strangers loglimit.Limit
}

// admissionLog is how often each reason to close connections is logged.
var admissionLog = loglimit.Rate{Burst: 2, Every: time.Minute}

// Listener returns a listener that closes at once what may not stay. A bound that has
// connections wait in place of that would leave them to the kernel's queue, where a gateway
// takes them for open and waits for answers.
func (a *Admission) Listener(l net.Listener) net.Listener { return &admitting{l, a} }

type admitting struct {
	net.Listener
	admission *Admission
}

// Accept returns the next connection that may stay.
func (l *admitting) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.admission.admit(conn.RemoteAddr()) {
			return &admitted{Conn: conn, open: &l.admission.Counters.Connections}, nil
		}
		_ = conn.Close()
	}
}

// admit reports whether a connection from the address may stay, and counts it.
func (a *Admission) admit(from net.Addr) bool {
	c := a.Counters
	if !a.Peers.Allow(from) {
		c.Strangers.Add(1)
		a.strangers.Warn(admissionLog, a.Log, "closed a connection from an address that may not connect", "address", from.String())
		return false
	}
	if open := c.Connections.Add(1); a.Max > 0 && open > int64(a.Max) {
		c.Connections.Add(-1)
		c.Full.Add(1)
		a.full.Warn(admissionLog, a.Log, "closed a connection: there are too many", "most", a.Max)
		return false
	}
	c.Accepted.Add(1)
	return true
}

// admitted is a connection that counts until it is closed.
type admitted struct {
	net.Conn
	open *atomic.Int64
	once sync.Once
}

// Close closes the connection.
func (c *admitted) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}
