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

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
)

// streamReader reads lines from connections. To the shards it is one reader: the goroutines of
// the connections take turns. A goroutine that works for the shards or waits for them delays the
// others. Then their buffers fill, and the senders wait.
type streamReader struct {
	listeners []streamListener
	stats     *listenerStats
	maxConns  int // maximum number of connections

	decoding *sync.RWMutex // see listener
	turn     sync.Mutex    // guards the decoder and the feed
	waiting  atomic.Int32  // goroutines that wait for their turn

	mu       sync.Mutex
	conns    map[*conn]struct{}
	draining bool // the end was requested
}

// conn is a connection.
type conn struct {
	net.Conn
	from   netip.Addr // zero for a Unix socket
	peer   base.Peer
	opened time.Time
	heard  atomic.Int64 // time of the last line that was understood, in nanoseconds since the Unix epoch; 0 if none was
}

func newStreamReader(stats *listenerStats) *streamReader {
	return &streamReader{decoding: new(sync.RWMutex), stats: stats, maxConns: min(MaxConnections, base.OpenFileLimit()/2), conns: make(map[*conn]struct{})}
}

// run implements reader.
func (r *streamReader) run(ctx context.Context, d *decode.Decoder, out aggregator.Feed) error {
	ticking, stopTicking := context.WithCancel(context.WithoutCancel(ctx))
	defer stopTicking()
	var reading, telling sync.WaitGroup
	errs := make([]error, len(r.listeners))
	ctx, fail := context.WithCancel(ctx)
	defer fail()
	stop := context.AfterFunc(ctx, r.drain)
	defer stop()
	telling.Go(func() { r.tickShards(ticking, d, out) })
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

// tickShards advances the shards' clock while nothing arrives.
func (r *streamReader) tickShards(ctx context.Context, d *decode.Decoder, out aggregator.Feed) {
	tick := func() { r.inTurn(d, out, func(time.Time) {}) }
	tick()
	for range base.Ticks(ctx, decode.Tick) {
		tick()
	}
}

// inTurn calls f when it is its turn to use the decoder and the feed. Packets count as arrived
// when their turn comes, since they may have waited for shards that were behind.
func (r *streamReader) inTurn(d *decode.Decoder, out aggregator.Feed, f func(now time.Time)) {
	r.waiting.Add(1)
	r.turn.Lock()
	defer r.turn.Unlock()
	r.waiting.Add(-1)
	out.Begin()
	r.decoding.RLock()
	defer r.decoding.RUnlock()
	now := time.Now()
	f(now)
	d.Advance(now, out)
	out.End(now, now, r.waiting.Load() > 0)
}

// drain wakes all goroutines that wait for input. Each continues for drainFor.
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

// read reads a connection to its end.
func (r *streamReader) read(c *conn, d *decode.Decoder, out aggregator.Feed) {
	f := framer{}
	s := d.NewStream(c.from)
	draining := false
	for {
		n, err := c.Read(f.room())
		if n > 0 {
			f.filled(n)
			before := s.Understood()
			if r.decode(&f, s, d, out); s.Understood() > before {
				c.heard.Store(time.Now().UnixNano())
			}
		}
		r.stats.TooLong.Add(f.takeTooLong())
		switch {
		case err == nil:
			continue
		case errors.Is(err, os.ErrDeadlineExceeded) && !draining && r.goesOn(c):
			draining = true
			continue
		}
		tail, truncated := f.last()
		if !errors.Is(err, io.EOF) { // the last line was not sent whole
			tail, truncated = nil, truncated || len(tail) > 0
		}
		if truncated {
			r.stats.Truncated.Add(1)
		}
		if len(tail) > 0 {
			r.inTurn(d, out, func(now time.Time) {
				s.Lines(tail, true, now, out)
			})
		}
		return
	}
}

// goesOn extends the deadline of a connection, unless it was closed for another one.
func (r *streamReader) goesOn(c *conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, open := r.conns[c]
	return open && c.SetReadDeadline(time.Now().Add(drainFor)) == nil
}

// decode decodes the complete packets.
func (r *streamReader) decode(f *framer, s *decode.Stream, d *decode.Decoder, out aggregator.Feed) {
	packet, ok := f.next()
	if !ok {
		return
	}
	r.inTurn(d, out, func(now time.Time) {
		for ; ok; packet, ok = f.next() {
			if f.framing == framingLengths {
				s.Packet(packet, now, out)
			} else {
				f.unread(s.Lines(packet, false, now, out))
			}
		}
	})
}

// close closes the listeners.
func (r *streamReader) close() error {
	var errs []error
	for _, l := range r.listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}
