package statsdsource

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
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

// streamReader reads lines from connections. To the shards it is one reader: the
// goroutines of the connections take turns. One that is at work for the shards, or
// waits for them, holds up the others; their buffers fill, and the senders wait.
type streamReader struct {
	listeners []streamListener
	stats     *listenerStats
	most      int // connections

	turn    sync.Mutex   // guards the decoder and the feed
	waiting atomic.Int32 // for their turn

	mu       sync.Mutex
	conns    map[*conn]struct{}
	draining bool // the end was asked for
}

// conn is a connection.
type conn struct {
	net.Conn
	from   netip.Addr // zero: a Unix socket
	opened time.Time
	heard  atomic.Int64 // when something came last, in nanoseconds since the Unix epoch; 0: never
}

func newStreamReader(stats *listenerStats) *streamReader {
	return &streamReader{stats: stats, most: min(MaxConnections, openfiles.Limit()/2), conns: make(map[*conn]struct{})}
}

// run implements reader.
func (r *streamReader) run(ctx context.Context, d *decode.Decoder, out feed) error {
	ticking, stopTicking := context.WithCancel(context.WithoutCancel(ctx))
	defer stopTicking()
	var reading, telling sync.WaitGroup
	errs := make([]error, len(r.listeners))
	ctx, fail := context.WithCancel(ctx)
	defer fail()
	stop := context.AfterFunc(ctx, r.drain)
	defer stop()
	telling.Go(func() { r.tell(ticking, d, out) })
	for i, l := range r.listeners {
		reading.Go(func() {
			defer fail()
			errs[i] = r.accept(ctx, l, &reading, d, out)
		})
	}
	reading.Wait()
	stopTicking()
	telling.Wait()
	return errors.Join(errs...)
}

// tell tells the shards the time while nothing comes, too.
func (r *streamReader) tell(ctx context.Context, d *decode.Decoder, out feed) {
	ticker := time.NewTicker(decode.Tick)
	defer ticker.Stop()
	for {
		r.take(d, out, func(time.Time) {})
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// take gives f its turn at the decoder and the feed. What comes is of the time at
// which it gets that: before, it may have waited for shards that were behind.
func (r *streamReader) take(d *decode.Decoder, out feed, f func(now time.Time)) {
	r.waiting.Add(1)
	r.turn.Lock()
	defer r.turn.Unlock()
	r.waiting.Add(-1)
	out.Begin()
	now := time.Now()
	f(now)
	d.Advance(now, out)
	out.End(now, now, r.waiting.Load() > 0)
}

// drain wakes up all that wait for something to come: each goes on for a while.
func (r *streamReader) drain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.draining = true
	now := time.Now()
	for _, l := range r.listeners {
		_ = l.SetDeadline(now)
	}
	for c := range r.conns {
		_ = c.SetReadDeadline(now)
	}
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
		r.stats.AcceptFailed.Add(1)
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
		r.stats.Unused.Add(1)
	case silent != nil:
		r.stats.Silent.Add(1)
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
	r.stats.Connections.Store(int64(len(r.conns)))
}

// read reads a connection to its end.
func (r *streamReader) read(c *conn, d *decode.Decoder, out feed) {
	f := framer{}
	s := d.NewStream(c.from)
	draining := false
	for {
		n, err := c.Read(f.room())
		if n > 0 {
			c.heard.Store(time.Now().UnixNano())
			f.filled(n)
			r.decode(&f, s, d, out)
		}
		r.stats.TooLong.Add(f.takeTooLong())
		switch {
		case err == nil:
			continue
		case errors.Is(err, os.ErrDeadlineExceeded) && !draining && r.goesOn(c):
			draining = true
			continue
		}
		rest, truncated := f.last()
		if !errors.Is(err, io.EOF) { // a line that was not sent whole
			rest, truncated = nil, truncated || len(rest) > 0
		}
		if truncated {
			r.stats.Truncated.Add(1)
		}
		if len(rest) > 0 {
			r.take(d, out, func(now time.Time) {
				s.Lines(rest, true, now, out)
			})
		}
		return
	}
}

// goesOn lets a connection go on for a while, unless it has made room for another.
func (r *streamReader) goesOn(c *conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, is := r.conns[c]
	return is && c.SetReadDeadline(time.Now().Add(drainFor)) == nil
}

// decode decodes what is whole by now.
func (r *streamReader) decode(f *framer, s *decode.Stream, d *decode.Decoder, out feed) {
	packet, ok := f.next()
	if !ok {
		return
	}
	r.take(d, out, func(now time.Time) {
		for ; ok; packet, ok = f.next() {
			if f.framing == framingLengths {
				s.Packet(packet, now, out)
			} else {
				f.keep(s.Lines(packet, false, now, out))
			}
		}
	})
}

// remote is the address of the other end; zero for a Unix socket.
func remote(c net.Conn) netip.Addr {
	a, _ := c.RemoteAddr().(*net.TCPAddr)
	return a.AddrPort().Addr().Unmap()
}

// close closes the listeners.
func (r *streamReader) close() error {
	var errs []error
	for _, l := range r.listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}
