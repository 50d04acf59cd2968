package statsdsink

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/hotparam/hotparam/wire"
)

const (
	// sendDeadline is how long a write may take, and heldUpFor all writes within
	// stuckFor: there may be others to send to. Beyond that a write may take
	// leastWait.
	sendDeadline = 50 * time.Millisecond
	heldUpFor    = 200 * time.Millisecond
	leastWait    = 5 * time.Millisecond
	// stuckFor is how long a socket that took nothing within the deadline is left
	// alone.
	stuckFor = time.Second
)

var (
	errClosed     = errors.New("the other side has closed the connection")
	errConnecting = errors.New("there is no connection yet")
)

// socket sends packets to one address: as datagrams, over UDP or a Unix socket, or
// as lines of a stream, over TCP or a Unix socket. Over all of them a packet is
// taken by the system within the deadline, whole, or told as failed; while there is
// no connection packets fail at once. So no address holds up others for long. What the
// system has taken is lost all the same if the other side goes away without having
// read it. A socket is used by one goroutine.
type socket struct {
	dialer
	conn net.Conn
	made time.Time       // when conn was
	gone <-chan struct{} // closed when the other side has closed its end of a stream
	err  error           // why there is no conn, or why it takes nothing; nil if all is well

	rest   time.Time     // until when nothing is sent
	doubt  time.Time     // until when what is sent is told as failed
	brief  bool          // the last stream ended soon after it was made
	since  time.Time     // when the present stuckFor began,
	waited time.Duration // and how long writes took in it

	buf  []byte // the last packet of a stream, with its newline,
	left []byte // and what is still to go of it
}

func newSocket(addr wire.Address) *socket {
	var d net.Dialer
	return &socket{
		dialer: dialer{addr: addr, open: d.DialContext, wait: firstWait},
		err:    fmt.Errorf("statsd %s: %w", addr, errConnecting),
	}
}

// Send sends one packet. Where the connection turns out to be broken a new one is
// made, and takes the packet unless the old one had begun with it.
func (s *socket) Send(packet []byte) (n int, err error) {
	for range 2 {
		if err := s.connect(); s.conn == nil || err != nil && time.Now().Before(s.rest) {
			return 0, err
		}
		if n, err = s.write(packet); err == nil {
			break
		}
		s.err = fmt.Errorf("statsd %s: %w", s.addr, err)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			s.rest = time.Now().Add(stuckFor)
		}
		if !s.isBroken(err) {
			return n, s.err
		}
		if s.drop(); n > 0 {
			return n, s.err
		}
	}
	if err == nil && (s.doubt.IsZero() || time.Now().After(s.doubt)) {
		s.err, s.doubt = nil, time.Time{}
	}
	return n, s.err
}

// write hands a packet to the system.
func (s *socket) write(packet []byte) (int, error) {
	if s.addr.IsStream() {
		return s.writeLines(packet)
	}
	n, err := s.writeWithin(packet)
	if s.addr.Network == "udp" && errors.Is(err, syscall.ECONNREFUSED) {
		// That nobody listens is the answer to the packet before, which was lost and
		// told as sent; so this one goes out and is told as failed in its stead:
		// while nobody listens every packet but the first is, and the failure does
		// not come and go with each packet.
		_, _ = s.writeWithin(packet)
	}
	return n, err
}

// writeLines writes a packet to a stream. Of one that has begun the rest goes
// before all others: it counts as taken, as what waits in the system's buffers
// does, and the stream stays whole.
func (s *socket) writeLines(packet []byte) (int, error) {
	if err := s.finish(); err != nil {
		return 0, err
	}
	s.buf = append(append(s.buf[:0], packet...), '\n')
	n, err := s.writeWithin(s.buf)
	if n > 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		s.left, err = s.buf[n:], nil
	}
	return min(n, len(packet)), err
}

// finish writes what is still to go of the last packet.
func (s *socket) finish() error {
	if len(s.left) == 0 {
		return nil
	}
	n, err := s.writeWithin(s.left)
	s.left = s.left[n:]
	return err
}

// writeWithin writes bytes within the deadline. If that has passed without a byte it
// tries again: it may have been we who were not running, and a socket that has
// room takes them at once.
func (s *socket) writeWithin(b []byte) (int, error) {
	start := time.Now()
	if start.Sub(s.since) >= stuckFor {
		s.since, s.waited = start, 0
	}
	_ = s.conn.SetWriteDeadline(start.Add(min(sendDeadline, max(leastWait, heldUpFor-s.waited))))
	n, err := s.conn.Write(b)
	took := time.Since(start)
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		_ = s.conn.SetWriteDeadline(time.Now().Add(leastWait))
		n, err = s.conn.Write(b)
	}
	if took > time.Millisecond { // else it did not wait
		s.waited += took
	}
	return n, err
}

// isBroken reports whether a connection is of no use after an error. A UDP socket is
// of use whatever happens; of the others one that is full is: some systems say so
// of a Unix socket by ENOBUFS.
func (s *socket) isBroken(err error) bool {
	return s.addr.Network != "udp" && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, syscall.ENOBUFS)
}

// connect dials if there is no connection, and over UDP from time to time a new one. It
// returns why packets are not taken, as far as is known.
func (s *socket) connect() error {
	select {
	case <-s.gone:
		s.err = fmt.Errorf("statsd %s: %w", s.addr, errClosed)
		s.drop()
	default: // or a nil channel
	}
	if d, ok := s.dialer.dial(s.conn != nil); ok {
		s.adopt(d)
	}
	return s.err
}

// adopt takes over the connection that was dialled; the old one stays if there is no new
// one.
func (s *socket) adopt(d dialed) {
	if d.err != nil {
		if s.conn == nil {
			s.err = fmt.Errorf("statsd %s: %w", s.addr, d.err)
		}
		return
	}
	now := time.Now()
	switch {
	// Nothing refuses the first packet of a UDP socket, and some accept connections
	// to close them: that a new one takes a packet does not end an outage.
	case s.conn != nil && s.err != nil, s.brief:
		s.doubt = now.Add(stuckFor)
	default:
		s.err = nil
	}
	s.hangUp()
	s.conn, s.made, s.rest, s.brief = d.conn, now, time.Time{}, false
	if s.addr.IsStream() {
		s.gone = drain(d.conn)
	}
}

// drop gives up a connection that is broken. The other side may be back already:
// the next is worth a wait.
func (s *socket) drop() {
	s.brief = s.addr.IsStream() && time.Since(s.made) < stuckFor
	s.wait = sendDeadline
	s.hangUp()
}

func (s *socket) hangUp() {
	if s.conn == nil {
		return
	}
	_ = s.conn.Close()
	if s.gone != nil {
		<-s.gone
	}
	s.conn, s.gone, s.left = nil, nil, nil
}

// drain reads from a stream until its other side is closed, which a write would
// tell one packet too late.
func drain(conn net.Conn) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, conn)
	}()
	return gone
}

// Close sends the rest of a packet that has begun, as far as the deadline allows,
// and ends the connection and the dial that is under way.
func (s *socket) Close() error {
	s.dialer.stop()
	if s.conn == nil {
		return nil
	}
	_ = s.finish()
	s.hangUp()
	return nil
}
