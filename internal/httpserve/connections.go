package httpserve

import (
	"bytes"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/openfiles"
)

// connections are those of a server. Each has a request or gives way to a new one.
type connections struct {
	most int

	mu       sync.Mutex
	all      map[*conn]struct{}
	spares   []*os.File // descriptors that are kept for when there are none
	isClosed bool
	counters Stats

	slow, tooLarge, unreadable atomic.Int64 // those of Stats
}

// conn is a connection. Its connections' mu guards it, but for what says otherwise.
type conn struct {
	net.Conn
	of        *connections
	since     time.Time // when it began, or its last request ended
	isBusy    bool      // a request is served
	isReserve bool      // it came when there were too many
	spare     bool      // it has the descriptor of a spare
	once      sync.Once

	serves atomic.Bool  // isBusy, for those who do not hold mu
	rests  atomic.Bool  // a request has ended, and nothing has come since; mu does not guard it
	within atomic.Int64 // the deadline of reads in Unix seconds, 0 without one; nor this
	isSlow atomic.Bool  // it is counted as slow; nor this
}

// spares is how many descriptors are kept: as many health checks at once.
const spares = 4

func newConnections(most int) *connections {
	return &connections{most: most, all: make(map[*conn]struct{})}
}

// open takes the spare descriptors. Fewer will do.
func (s *connections) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range spares {
		s.keepSpare()
	}
}

// keepSpare takes one more, if there is one. s.mu is held.
func (s *connections) keepSpare() {
	if s.isClosed || len(s.spares) >= spares {
		return
	}
	if f, err := os.Open(os.DevNull); err == nil {
		s.spares = append(s.spares, f)
	}
}

func (s *connections) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isClosed = true
	for _, f := range s.spares {
		_ = f.Close()
	}
	s.spares = nil
}

func (s *connections) stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counters
	c.Connections, c.Slow, c.TooLarge, c.Unreadable = len(s.all), s.slow.Load(), s.tooLarge.Load(), s.unreadable.Load()
	return c
}

// setBusy notes that a request begins or has ended, and reports whether its connection
// is of the reserve.
func (s *connections) setBusy(c *conn, isBusy bool) (isReserve bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.isBusy, c.since = isBusy, time.Now()
	c.serves.Store(isBusy)
	c.rests.Store(!isBusy)
	return c.isReserve
}

// SetReadDeadline implements [net.Conn].
func (c *conn) SetReadDeadline(t time.Time) error {
	var unix int64
	if !t.IsZero() {
		unix = t.Unix()
	}
	c.within.Store(unix)
	return c.Conn.SetReadDeadline(t)
}

// Read implements [net.Conn]. It counts a peer that has not sent its first request, or all of
// one that it began, in time. http.Server also uses deadlines, which are long past, to end a
// read that nobody needs.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.rests.Load() {
		c.rests.Store(false)
	}
	const longPast = 1 // as http.Server has it
	if errors.Is(err, os.ErrDeadlineExceeded) && !c.rests.Load() && c.within.Load() > longPast && c.isSlow.CompareAndSwap(false, true) {
		c.of.slow.Add(1)
	}
	return n, err
}

// Write implements [net.Conn]. It counts the answers that are not to a request that is served:
// http.Server gives them to what it cannot read, and tells nobody.
func (c *conn) Write(b []byte) (int, error) {
	if !c.serves.Load() {
		switch {
		case bytes.HasPrefix(b, []byte("HTTP/1.1 431")):
			c.of.tooLarge.Add(1)
		case bytes.HasPrefix(b, []byte("HTTP/1.1 ")), bytes.HasPrefix(b, []byte("HTTP/1.0 ")):
			c.of.unreadable.Add(1)
		}
	}
	return c.Conn.Write(b)
}

// admit takes a connection in, and closes the one that has been without a request for
// longest when there are too many. It returns nil if it had to close c.
func (s *connections) admit(accepted net.Conn, spare bool) *conn {
	c := &conn{Conn: accepted, of: s, since: time.Now(), spare: spare}
	s.mu.Lock()
	var evicted *conn
	if len(s.all) >= s.most {
		evicted = s.idlest(time.Now())
	}
	if evicted == nil && len(s.all) >= s.most+reserved {
		s.counters.Refused++
		s.mu.Unlock()
		_ = c.Close()
		return nil
	}
	c.isReserve = spare || evicted == nil && len(s.all) >= s.most
	s.all[c] = struct{}{}
	s.mu.Unlock()
	s.evict(evicted)
	return c
}

// idlest takes out the connection that has been without a request for longest, since
// before the instant, or nil if there is none. s.mu is held.
func (s *connections) idlest(before time.Time) (idlest *conn) {
	for c := range s.all {
		if !c.isBusy && !c.since.After(before) && (idlest == nil || c.since.Before(idlest.since)) {
			idlest = c
		}
	}
	if idlest != nil {
		s.counters.Evicted++
		delete(s.all, idlest)
	}
	return idlest
}

func (s *connections) evict(c *conn) {
	if c != nil {
		_ = c.Close()
	}
}

// justCame is how long a connection is spared when descriptors are short: Accept fails
// then before anybody has come, and the last who came would have to go at once.
const justCame = time.Second

// starved makes a descriptor free, by a connection that has no request, else by a
// spare, and reports whether there was one.
func (s *connections) starved() (found, spare bool) {
	s.mu.Lock()
	s.counters.Starved++
	if c := s.idlest(time.Now().Add(-justCame)); c != nil {
		s.mu.Unlock()
		s.evict(c)
		return true, false
	}
	defer s.mu.Unlock()
	if len(s.spares) == 0 {
		return false, false
	}
	last := len(s.spares) - 1
	_ = s.spares[last].Close()
	s.spares = s.spares[:last]
	return true, true
}

// Close closes the connection; a spare's descriptor is kept again.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		delete(c.of.all, c)
		c.of.keepSpare()
	})
	return err
}

// limitedListener admits what a listener accepts.
type limitedListener struct {
	net.Listener
	conns *connections
}

// Accept returns the next connection. After its error http.Server waits, 5 ms at first
// and a second at most, and asks again.
func (l *limitedListener) Accept() (net.Conn, error) {
	spare := false
	for {
		accepted, err := l.Listener.Accept()
		switch {
		case err == nil:
			if c := l.conns.admit(accepted, spare); c != nil {
				return c, nil
			}
			spare = false
			continue
		case !openfiles.AreShort(err):
			return nil, err
		}
		found := false
		if found, spare = l.conns.starved(); !found {
			return nil, err
		}
	}
}
