// Package connlimit bounds the connections that a server accepts, so that no peer locks out the
// others, however many connections it opens and whatever it sends on them.
//
//	limiter.go   which connections are accepted, and which are closed for a new one
//	listener.go  accepting connections, even if the process has no file descriptor left
//	conn.go      one connection: idle or in use, plain or TLS
//
// golang.org/x/net/netutil.LimitListener was considered. It delays Accept at the maximum, so one
// peer that opens connections and sends nothing locks out all others. github.com/soheilhy/cmux
// and others choose by protocol, and bound nothing.
package connlimit

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/loglimit"
)

// Config configures a [Limiter]. The zero value accepts all connections.
type Config struct {
	// Max is the maximum number of open connections. Zero means no limit. At the maximum, a new
	// connection displaces the one that has been idle longest, of the peer with the most
	// connections.
	Max int
	// Reserve is the number of connections that are accepted beyond Max while no connection can
	// be closed, and, one at a time, while the process has no file descriptor. Their
	// [Conn.Reserved] is set.
	Reserve int
	// CloseUsed also closes connections that are in use, the newest of the peer that has most,
	// for a peer that has at least two fewer. It is for protocols whose connections, once in
	// use, are never idle. Otherwise the idle connection of any peer is closed.
	CloseUsed bool
	// Allow are the networks from which peers may connect. Empty means all. Peers of Unix
	// sockets always may: the permissions of the socket's directory restrict them.
	Allow []netip.Prefix
	TLS   *tls.Config  // nil means plain text
	Log   *slog.Logger // nil disables logging
}

// Stats are the counters of a [Limiter] since it was created.
type Stats struct {
	Connections int64 // open now
	Used        int64 // connections in use
	Spares      int64 // file descriptors kept for a time when there are none
	Displaced   int64 // closed to make room for a new one
	Full        int64 // closed on accept: at the maximum, with no connection to displace
	Starved     int64 // accepts that failed because the process had no file descriptor
	Strangers   int64 // closed on accept: the address is not allowed
	NoTLS       int64 // closed because the TLS handshake failed, as with a wrong certificate
}

// Limiter bounds the connections of a server. It is safe for concurrent use.
type Limiter struct {
	config                 Config
	full, strangers, noTLS loglimit.Limit

	mu        sync.Mutex // guards the rest
	open      map[*Conn]struct{}
	accepted  uint64     // connections accepted so far
	spares    []*os.File // descriptors kept for a time when there are none
	listeners int        // open listeners; without one, no spares are kept
	stats     Stats
}

// New returns a limiter.
func New(c Config) *Limiter {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Limiter{config: c, open: make(map[*Conn]struct{})}
}

// logRate limits the log lines of each reason to close a connection.
var logRate = loglimit.LineRate{Burst: 2, Every: time.Minute}

// Stats returns the counters.
func (l *Limiter) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.Connections, s.Spares = int64(len(l.open)), int64(len(l.spares))
	for c := range l.open {
		if c.used {
			s.Used++
		}
	}
	return s
}

// HandshakeFailed counts and logs a failed TLS handshake. It ignores errors that mean that the
// peer or the server closed the connection.
func (l *Limiter) HandshakeFailed(from net.Addr, err error) {
	if slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, net.ErrClosed}, func(end error) bool { return errors.Is(err, end) }) {
		return // for example after a port check
	}
	l.mu.Lock()
	l.stats.NoTLS++
	l.mu.Unlock()
	l.noTLS.Warn(logRate, l.config.Log, "closed a connection: the TLS handshake failed", "address", from.String(), "err", err)
}

// allows reports whether a peer at the address may connect.
func (l *Limiter) allows(from net.Addr) bool {
	tcp, ok := from.(*net.TCPAddr)
	if !ok || len(l.config.Allow) == 0 {
		return true
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	return slices.ContainsFunc(l.config.Allow, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// admit counts a connection and returns it wrapped, or nil if it is not admitted. onSpare
// reports whether it has the descriptor of a spare.
func (l *Limiter) admit(raw net.Conn, onSpare bool) *Conn {
	if from := raw.RemoteAddr(); !l.allows(from) {
		l.mu.Lock()
		l.stats.Strangers++
		l.mu.Unlock()
		l.strangers.Warn(logRate, l.config.Log, "closed a connection: the address is not allowed", "address", from.String())
		return nil
	}
	c := newConn(l, raw)
	l.mu.Lock()
	isFull := l.config.Max > 0 && len(l.open) >= l.config.Max
	var displaced *Conn
	if isFull {
		displaced = l.displace(c.peer)
	}
	if isFull && displaced == nil && len(l.open) >= l.config.Max+l.config.Reserve {
		l.stats.Full++
		l.mu.Unlock()
		l.full.Warn(logRate, l.config.Log, "refused a new connection: as many are open as may be", "max", l.config.Max)
		return nil
	}
	c.Reserved = onSpare || isFull && displaced == nil
	l.accepted++
	c.number = l.accepted
	l.open[c] = struct{}{}
	l.mu.Unlock()
	displaced.Abort()
	return c
}

// displace removes a connection to make room for newcomer and returns it, or nil if there is
// none. The caller holds mu, and closes the connection.
func (l *Limiter) displace(newcomer base.Peer) *Conn {
	places := make(base.PeerPlaces)
	for c := range l.open {
		places[c.peer]++
	}
	gives := places.Gives(newcomer)
	chosen := l.idlest(func(c *Conn) bool { return gives(c.peer) })
	switch {
	case chosen != nil:
	case !l.config.CloseUsed:
		chosen = l.idlest(func(*Conn) bool { return true })
	default:
		for c := range l.open {
			if gives(c.peer) && (chosen == nil || c.number > chosen.number) {
				chosen = c
			}
		}
		if chosen != nil && !places.Yields(chosen.peer, newcomer) {
			return nil
		}
	}
	l.remove(chosen)
	return chosen
}

// idlest returns the connection that has been idle longest among those for which may returns
// true, or nil. The caller holds mu.
func (l *Limiter) idlest(may func(*Conn) bool) (idlest *Conn) {
	for c := range l.open {
		if c.used || idlest != nil && (c.since.After(idlest.since) || c.since.Equal(idlest.since) && c.number > idlest.number) {
			continue
		}
		if may(c) {
			idlest = c
		}
	}
	return idlest
}

// remove removes a displaced connection, which may be nil. The caller holds mu.
func (l *Limiter) remove(c *Conn) {
	if c != nil {
		l.stats.Displaced++
		delete(l.open, c)
	}
}
