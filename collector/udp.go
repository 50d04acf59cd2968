package collector

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// udpSender sends packets over a connected UDP socket: a connected one is told
// when nobody listens. It waits for a name to be resolved once; from then on
// names are looked up beside it, and while there is no socket packets fail at
// once: other addresses are not held up.
type udpSender struct {
	addr   string
	conn   net.Conn
	next   time.Time   // when to dial anew: the address may have moved
	dialed chan dialed // of the dial that is under way; nil: none is
	err    error       // why there is no socket, or none that takes anything
	rest   time.Time   // until when the socket takes nothing
}

type dialed struct {
	conn net.Conn
	err  error
}

const (
	redial       = 30 * time.Second
	redialFailed = time.Second
	dialDeadline = 200 * time.Millisecond
	sendDeadline = 50 * time.Millisecond
	// stuckFor is how long a socket that took nothing within the deadline is left
	// alone: it holds up others, too.
	stuckFor = time.Second
)

// Send sends one packet. That nobody listens is the answer to the packet before,
// which was lost and told as sent; so this one goes out and is told as failed in
// its stead: while nobody listens every packet but the first is, and the failure
// does not come and go with each packet.
func (u *udpSender) Send(packet []byte) (int, error) {
	now := time.Now()
	u.dial(now)
	if u.conn == nil || now.Before(u.rest) {
		return 0, u.err
	}
	_ = u.conn.SetWriteDeadline(now.Add(sendDeadline))
	n, err := u.conn.Write(packet)
	if errors.Is(err, syscall.ECONNREFUSED) {
		_, _ = u.conn.Write(packet)
	}
	if err == nil {
		return n, nil
	}
	err = fmt.Errorf("statsd %s: %w", u.addr, err)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		u.err, u.rest = err, now.Add(stuckFor)
	}
	return n, err
}

// dial sees to it that there is a socket, and in time a new one; it keeps the old
// one where a new one cannot be had.
func (u *udpSender) dial(now time.Time) {
	first := u.dialed == nil && u.next.IsZero()
	if u.dialed == nil && now.After(u.next) {
		u.dialed = make(chan dialed, 1)
		go func(addr string, done chan<- dialed) {
			ctx, cancel := context.WithTimeout(context.Background(), dialDeadline)
			defer cancel()
			var d net.Dialer
			conn, err := d.DialContext(ctx, "udp", addr)
			done <- dialed{conn, err}
		}(u.addr, u.dialed)
	}
	if first {
		u.took(<-u.dialed, now)
		return
	}
	select {
	case d := <-u.dialed:
		u.took(d, now)
	default: // or a nil channel
	}
}

func (u *udpSender) took(d dialed, now time.Time) {
	u.dialed = nil
	if d.err != nil {
		u.err, u.next = fmt.Errorf("statsd %s: %w", u.addr, d.err), now.Add(redialFailed)
		return
	}
	if u.conn != nil {
		_ = u.conn.Close()
	}
	u.conn, u.next, u.rest = d.conn, now.Add(redial), time.Time{}
}

// Close closes the socket, and waits for the dial that is under way, which ends
// soon.
func (u *udpSender) Close() error {
	if u.dialed != nil {
		if d := <-u.dialed; d.conn != nil {
			_ = d.conn.Close()
		}
		u.dialed = nil
	}
	if u.conn == nil {
		return nil
	}
	err := u.conn.Close()
	u.conn = nil
	return err
}
