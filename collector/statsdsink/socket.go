package statsdsink

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
)

const (
	// sendDeadline bounds one write, and heldUpFor all writes within stuckFor, since
	// there may be other addresses to send to. Once heldUpFor is used up, a write may still
	// take leastWait.
	sendDeadline = 50 * time.Millisecond
	heldUpFor    = 200 * time.Millisecond
	leastWait    = 5 * time.Millisecond
	// stuckFor is the time that nothing is sent to a socket that accepted nothing within
	// the deadline.
	stuckFor = time.Second
)

var (
	errClosed     = errors.New("the other side has closed the connection")
	errConnecting = errors.New("there is no connection yet")
)

// socket sends packets to one address: as datagrams over UDP or a Unix socket, or as
// lines of a stream over TCP or a Unix socket. Either the system accepts a whole packet
// within the deadline, or the packet fails. Without a connection, packets fail at once, so
// that no address delays others for long. Packets that the system has accepted are still
// lost if the other side ends before it reads them. A socket is used by one goroutine.
type socket struct {
	dialer
	conn net.Conn
	made time.Time       // time when conn was made
	gone <-chan struct{} // closed when the other side has closed its end of a stream
	err  error           // why there is no conn, or why it accepts nothing; or nil

	idleUntil time.Time     // time until which nothing is sent
	doubt     time.Time     // time until which packets are reported as failed
	brief     bool          // whether the last stream ended soon after it was made
	since     time.Time     // time when the present stuckFor began
	waited    time.Duration // time that writes have taken since then

	buf  []byte // the last packet of a stream, with its newline
	left []byte // the unsent part of buf
}

func newSocket(addr wire.Address) *socket {
	var d net.Dialer
	return &socket{
		dialer: dialer{addr: addr, open: d.DialContext, wait: firstWait},
		err:    fmt.Errorf("statsd %s: %w", addr, errConnecting),
	}
}

// Send sends one packet. If the connection turns out to be broken, Send makes a new one
// and sends the packet over that, unless it has already sent a part of it.
func (s *socket) Send(packet []byte) (n int, err error) {
	for range 2 {
		if err := s.connect(); s.conn == nil || err != nil && time.Now().Before(s.idleUntil) {
			return 0, err
		}
		if n, err = s.write(packet); err == nil {
			break
		}
		s.err = fmt.Errorf("statsd %s: %w", s.addr, err)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			s.idleUntil = time.Now().Add(stuckFor)
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

// write passes a packet to the system.
func (s *socket) write(packet []byte) (int, error) {
	if s.addr.IsStream() {
		return s.writeLines(packet)
	}
	n, err := s.writeWithin(packet)
	if s.addr.Network == "udp" && errors.Is(err, syscall.ECONNREFUSED) {
		// ECONNREFUSED is the answer to the previous packet, which was lost but reported
		// as sent. The present packet is sent, but reported as failed in its stead. So while
		// no one listens, all packets but the first fail, instead of every other one.
		_, _ = s.writeWithin(packet)
	}
	return n, err
}

// writeLines writes a packet to a stream. A packet that is partly written counts as sent, as
// one in the system's buffers does. Its rest is written before the next packet, so that no
// line is cut.
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

// finish writes the rest of the last packet.
func (s *socket) finish() error {
	if len(s.left) == 0 {
		return nil
	}
	n, err := s.writeWithin(s.left)
	s.left = s.left[n:]
	return err
}

// writeWithin writes bytes within the deadline. If no byte was written by then, it tries once
// more, since the cause may be that this process did not run: a socket with room accepts bytes
// at once.
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
	if took > time.Millisecond { // otherwise the write did not wait
		s.waited += took
	}
	return n, err
}

// isBroken reports whether a connection cannot be used after an error. A UDP socket can always
// be used. So can any socket that is full, which some systems report for Unix sockets by
// ENOBUFS.
func (s *socket) isBroken(err error) bool {
	return s.addr.Network != "udp" && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, syscall.ENOBUFS)
}

// connect dials if there is no connection, and over UDP also periodically to replace it.
// It returns the known reason why packets are not accepted, or nil.
func (s *socket) connect() error {
	select {
	case <-s.gone:
		s.err = fmt.Errorf("statsd %s: %w", s.addr, errClosed)
		s.drop()
	default: // also if gone is nil
	}
	if d, ok := s.dialer.dial(s.conn != nil); ok {
		s.adopt(d)
	}
	return s.err
}

// adopt replaces the connection by the dialled one, unless the dial failed.
func (s *socket) adopt(d dialed) {
	if d.err != nil {
		if s.conn == nil {
			s.err = fmt.Errorf("statsd %s: %w", s.addr, d.err)
		}
		return
	}
	now := time.Now()
	switch {
	// A new connection that accepts a packet does not end an outage: the first packet
	// of a UDP socket is never refused, and some servers accept connections only to
	// close them.
	case s.conn != nil && s.err != nil, s.brief:
		s.doubt = now.Add(stuckFor)
	default:
		s.err = nil
	}
	s.hangUp()
	s.conn, s.made, s.idleUntil, s.brief = d.conn, now, time.Time{}, false
	if s.addr.IsStream() {
		s.gone = drain(d.conn)
	}
}

// drop closes a broken connection. The other side may already have returned, so the next
// packet waits for a new connection.
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

// drain reads from a stream until the other side closes it. A write would notice the end one
// packet too late.
func drain(conn net.Conn) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, conn)
	}()
	return gone
}

// Close sends the rest of the last packet as far as the deadline allows, closes the
// connection, and stops a dial in progress.
func (s *socket) Close() error {
	s.dialer.stop()
	if s.conn == nil {
		return nil
	}
	_ = s.finish()
	s.hangUp()
	return nil
}
