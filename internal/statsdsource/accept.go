package statsdsource

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
)

const (
	// MaxConnections is the number of connections that are read at a time, over all addresses.
	// Each uses at most 64 KiB. If the process may open few files, the limit is half of these.
	MaxConnections = 1024
	// silentFor is how long a sender must have sent no line before its connection may be closed
	// for a new one, once MaxConnections are open. Clients of StatsD send at least every ten
	// seconds. A connection without a line that was understood is closed first, so no live
	// sender is closed for one that does not send. While there is room none is closed, since a
	// client of StatsD notices only after it has lost what it sent next. (Keep-alive finds dead
	// connections.)
	silentFor = 15 * time.Second
	// justCame is how long a new connection is spared when file descriptors are short. accept
	// then fails before anything arrives, and the newest connection would be closed at once.
	justCame = time.Second
	// acceptPause is the wait after a failure to accept a connection. It doubles up to
	// maxAcceptPause.
	acceptPause    = 5 * time.Millisecond
	maxAcceptPause = time.Second
)

// accept accepts connections until ctx ends and the waiting ones have been accepted.
func (r *streamReader) accept(ctx context.Context, l streamListener, reading *sync.WaitGroup, d *decode.Decoder, out aggregator.Feed) error {
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
					defer r.closeConn(c)
					r.read(c, d, out)
				})
			}
			continue
		case errors.Is(err, os.ErrDeadlineExceeded):
			if draining {
				return nil
			}
			draining = true // still accept connections that are waiting
			_ = l.SetDeadline(time.Now().Add(drainFor))
			continue
		case errors.Is(err, net.ErrClosed):
			return err
		}
		r.stats.AcceptFailed.Add(1)
		if base.IsOutOfFiles(err) && r.makeRoom(time.Now()) {
			pause = acceptPause // until the descriptor is free
		}
		if base.Sleep(ctx, pause) != nil {
			return nil
		}
		pause = min(2*pause, maxAcceptPause)
	}
}

// admit registers a connection, or closes it and returns nil if there are too many.
func (r *streamReader) admit(accepted net.Conn) *conn {
	now := time.Now()
	c := &conn{Conn: accepted, from: remote(accepted), peer: base.PeerOf(accepted), opened: now}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.conns) >= r.maxConns && !r.displace(&c.peer, now, now) {
		r.stats.Refused.Add(1)
		_ = accepted.Close()
		return nil
	}
	r.conns[c] = struct{}{}
	if r.draining {
		_ = c.SetReadDeadline(now)
	}
	r.stats.Accepted.Add(1)
	r.stats.Connections.Store(int64(len(r.conns)))
	return c
}

// makeRoom closes a connection to free its descriptor, and reports whether there was one to
// close.
func (r *streamReader) makeRoom(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.displace(nil, now, now.Add(-justCame))
}

// displace closes a connection for one of newcomer, and reports whether there was one to close.
// It only considers peers that must give a place to newcomer. The first choice is the oldest
// connection that has sent no line and was opened at or before came. The second is the
// connection that has been silent longest, if that is at least silentFor or if its peer yields
// to newcomer. A nil newcomer means that only a descriptor is needed: then all connections are
// considered. r.mu is held.
func (r *streamReader) displace(newcomer *base.Peer, now, came time.Time) bool {
	places := make(base.PeerPlaces)
	for c := range r.conns {
		places[c.peer]++
	}
	gives := func(base.Peer) bool { return true }
	if newcomer != nil {
		gives = places.Gives(*newcomer)
	}
	var unused, silent *conn
	for c := range r.conns {
		switch heard := c.heard.Load(); {
		case !gives(c.peer):
		case heard == 0:
			if !c.opened.After(came) && (unused == nil || c.opened.Before(unused.opened)) {
				unused = c
			}
		case silent == nil || heard < silent.heard.Load():
			silent = c
		}
	}
	switch {
	case unused != nil:
		r.stats.Unused.Add(1)
		r.requestClose(unused)
	case silent == nil:
		return false
	case now.UnixNano()-silent.heard.Load() >= int64(silentFor):
		r.stats.Silent.Add(1)
		r.requestClose(silent)
	case newcomer != nil && places.Yields(silent.peer, *newcomer):
		r.stats.Crowded.Add(1)
		r.requestClose(silent)
	default:
		return false
	}
	return true
}

// requestClose makes the goroutine of a connection close it. r.mu is held.
func (r *streamReader) requestClose(c *conn) {
	_ = c.SetReadDeadline(time.Now())
	delete(r.conns, c)
}

// closeConn closes a connection.
func (r *streamReader) closeConn(c *conn) {
	_ = c.Close() // all has been read
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
	r.stats.Connections.Store(int64(len(r.conns)))
}

// remote returns the address of the peer, or the zero address for a Unix socket.
func remote(c net.Conn) netip.Addr {
	a, _ := c.RemoteAddr().(*net.TCPAddr)
	return a.AddrPort().Addr().Unmap()
}
