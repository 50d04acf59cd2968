package statsdsource

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/hotparam/hotparam/aggregator/decode"
	"github.com/hotparam/hotparam/internal/openfiles"
	"github.com/hotparam/hotparam/wire"
)

const (
	// MaxConnections is how many connections are read at a time, of all addresses.
	// Each holds at most 64 KiB. A process that may open few files reads fewer: half
	// of those.
	MaxConnections = 1024
	// silentFor is how long a sender must have been silent to make room for a new
	// connection when there are so many: clients of StatsD send every ten seconds
	// at least. A connection that has sent nothing yet makes room before it, so a
	// live sender never goes for one that does not send. As long as there is room
	// none is closed: a client of StatsD learns of it only when it has lost what it
	// sent next. (Keep-alive finds the dead ones.)
	silentFor = 15 * time.Second
	// justCame is how long a connection is spared when descriptors are short: then
	// accepting fails before anybody has come, and the last would go at once.
	justCame = time.Second
	// acceptPause and maxAcceptPause are waited after connections could not be
	// accepted, the first time and at most.
	acceptPause    = 5 * time.Millisecond
	maxAcceptPause = time.Second
)

// streamListener is a listener for connections, TCP or Unix.
type streamListener interface {
	net.Listener
	SetDeadline(time.Time) error
}

// listenStream opens the listener of an address.
func listenStream(ctx context.Context, addr wire.Address) (streamListener, error) {
	if addr.Network == "unix" {
		return listenUnixStream(ctx, addr.Addr)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, addr.Network, addr.Addr)
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}

// accept takes connections until ctx has ended and all is over.
func (r *streamReader) accept(ctx context.Context, l streamListener, reading *sync.WaitGroup, d *decode.Decoder, out feed) error {
	pause, draining := acceptPause, false
	for {
		accepted, err := l.Accept()
		switch {
		case err == nil:
			pause = acceptPause
			if !d.AdmitsConnection(remote(accepted)) {
				_ = accepted.Close()
			} else if c := r.admit(accepted); c != nil {
				reading.Go(func() {
					defer r.leave(c)
					r.read(c, d, out)
				})
			}
			continue
		case errors.Is(err, os.ErrDeadlineExceeded):
			if draining {
				return nil
			}
			draining = true // what has been dialled by now is accepted still
			_ = l.SetDeadline(time.Now().Add(drainFor))
			continue
		case errors.Is(err, net.ErrClosed):
			return err
		}
		r.stats.acceptFailed.Add(1)
		if openfiles.AreShort(err) && r.makeRoom(time.Now()) {
			pause = acceptPause // until it is closed
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = min(2*pause, maxAcceptPause)
	}
}

// admit makes a connection one of those that are read; nil: there are too many.
func (r *streamReader) admit(accepted net.Conn) *conn {
	now := time.Now()
	c := &conn{Conn: accepted, from: remote(accepted), opened: now}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.conns) >= r.most && !r.displace(now, now) {
		r.stats.refused.Add(1)
		_ = accepted.Close()
		return nil
	}
	r.conns[c] = struct{}{}
	if r.draining {
		_ = c.SetReadDeadline(now)
	}
	r.stats.accepted.Add(1)
	r.stats.connections.Store(int64(len(r.conns)))
	return c
}

// makeRoom closes a connection to have its descriptor, and reports whether there was
// one to close.
func (r *streamReader) makeRoom(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.displace(now, now.Add(-justCame))
}

// displace closes the oldest of the connections that have sent nothing and came before
// the instant; without one the connection that has been silent longest, if it has been
// for long. r.mu is held.
func (r *streamReader) displace(now, came time.Time) bool {
	var unused, silent *conn
	for c := range r.conns {
		switch heard := c.heard.Load(); {
		case heard == 0:
			if !c.opened.After(came) && (unused == nil || c.opened.Before(unused.opened)) {
				unused = c
			}
		case now.UnixNano()-heard >= int64(silentFor):
			if silent == nil || heard < silent.heard.Load() {
				silent = c
			}
		}
	}
	switch {
	case unused != nil:
		r.stats.unused.Add(1)
	case silent != nil:
		r.stats.silent.Add(1)
		unused = silent
	default:
		return false
	}
	_ = unused.SetReadDeadline(now) // its goroutine closes it
	delete(r.conns, unused)
	return true
}

// leave closes a connection.
func (r *streamReader) leave(c *conn) {
	_ = c.Close() // all is read
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
	r.stats.connections.Store(int64(len(r.conns)))
}

// remote is the address of the other end; zero for a Unix socket.
func remote(c net.Conn) netip.Addr {
	a, _ := c.RemoteAddr().(*net.TCPAddr)
	return a.AddrPort().Addr().Unmap()
}
