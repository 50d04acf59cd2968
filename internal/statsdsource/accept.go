package statsdsource

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
)

const (
	// MaxConnections is how many connections are read at a time, of all addresses. Each uses
	// at most 64 KiB. The limit is lower where the process may open few files: half of those.
	MaxConnections = 1024
	// silentFor is how long a sender must have sent no line to be closed for a new connection
	// when there are so many: clients of StatsD send at least every ten seconds. A connection
	// without a line that was understood is closed first, so no live sender is closed for one
	// that does not send. None is closed while there is room, as a client of StatsD notices
	// only when it has lost what it sent next. (Keep-alive finds dead ones.)
	silentFor = 15 * time.Second
	// justCame is how long a new connection is spared when descriptors are short: accepting
	// then fails before anything arrives, and the newest would be closed at once.
	justCame = time.Second
	// acceptPause and maxAcceptPause are waited after connections could not be
	// accepted, the first time and at most.
	acceptPause    = 5 * time.Millisecond
	maxAcceptPause = time.Second
)

// accept accepts connections until ctx ends and the waiting ones are accepted.
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
			draining = true // connections that are waiting are still accepted
			_ = l.SetDeadline(time.Now().Add(drainFor))
			continue
		case errors.Is(err, net.ErrClosed):
			return err
		}
		r.stats.AcceptFailed.Add(1)
		if base.IsOutOfFiles(err) && r.makeRoom(time.Now()) {
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

// admit registers a connection, or closes it and returns nil if there are too many.
func (r *streamReader) admit(accepted net.Conn) *conn {
	now := time.Now()
	c := &conn{Conn: accepted, from: remote(accepted), peer: base.PeerOf(accepted), opened: now}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.conns) >= r.most && !r.displace(&c.peer, now, now) {
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

// makeRoom closes a connection to have its descriptor, and reports whether there was
// one to close.
func (r *streamReader) makeRoom(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.displace(nil, now, now.Add(-justCame))
}

// displace closes a connection for one of newcomer, of a peer that gives it: the oldest of those
// that have sent no line and came before the instant, else the one that has been silent longest, if
// that is long, or if its peer has two more. A nil newcomer is nobody: a descriptor is needed. It
// reports whether there was one to close. r.mu is held.
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
		r.end(unused)
	case silent == nil:
		return false
	case now.UnixNano()-silent.heard.Load() >= int64(silentFor):
		r.stats.Silent.Add(1)
		r.end(silent)
	case newcomer != nil && places.Yields(silent.peer, *newcomer):
		r.stats.Crowded.Add(1)
		r.end(silent)
	default:
		return false
	}
	return true
}

// end has the goroutine of a connection close it. r.mu is held.
func (r *streamReader) end(c *conn) {
	_ = c.SetReadDeadline(time.Now())
	delete(r.conns, c)
}

// leave closes a connection.
func (r *streamReader) leave(c *conn) {
	_ = c.Close() // all is read
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
	r.stats.Connections.Store(int64(len(r.conns)))
}

// remote returns the address of the other end, or the zero address for a Unix socket.
func remote(c net.Conn) netip.Addr {
	a, _ := c.RemoteAddr().(*net.TCPAddr)
	return a.AddrPort().Addr().Unmap()
}
