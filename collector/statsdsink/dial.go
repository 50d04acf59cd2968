package statsdsink

import (
	"context"
	"math"
	"net"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/wire"
)

// dialer makes connections to an address in separate goroutines, so that a slow name server
// does not delay the sender.
type dialer struct {
	addr   wire.Address
	open   func(ctx context.Context, network, addr string) (net.Conn, error)
	begun  time.Time          // time when the last dial began
	pause  time.Duration      // minimum time from then to the next dial, without a connection
	failed int                // consecutive failed dials
	wait   time.Duration      // how long to wait for the next connection
	done   chan dialed        // result of the dial in progress; nil if there is none
	cancel context.CancelFunc // cancels the dial in progress
}

type dialed struct {
	conn net.Conn
	err  error
}

const (
	// redial is the interval at which a UDP socket is replaced. The name is resolved again,
	// since nothing reports that it has moved. The new socket has a new local port, so that a
	// load balancer does not keep sending to a machine that no longer exists. Streams need no
	// redial: they break.
	redial = 30 * time.Second
	// redialFailed is the first wait after a failed dial of a host, redialLocal of a
	// path. The wait doubles after each failure up to redialMost. Up to half of it is random,
	// so that instances do not dial at the same time.
	redialFailed = time.Second
	redialLocal  = 100 * time.Millisecond
	redialMost   = 2 * time.Second

	dialDeadline = 2 * time.Second
	// firstWait is the time that the first packet waits for its connection.
	firstWait = 200 * time.Millisecond
	// unackedFor is the time that a stream is used while the other side acknowledges
	// nothing. Packets sent during that time are lost, but reported as sent.
	unackedFor = 10 * time.Second
)

// dial begins a dial when one is due. It returns the result of a dial that has ended, and
// whether there is one.
func (d *dialer) dial(connected bool) (dialed, bool) {
	if d.done == nil {
		now := time.Now()
		if now.Sub(d.begun) < d.interval(connected) {
			return dialed{}, false
		}
		d.startDial(now)
	}
	if !connected && d.wait > 0 {
		timer := time.NewTimer(d.wait)
		defer timer.Stop()
		d.wait = 0
		select {
		case r := <-d.done:
			d.recordDial(r)
			return r, true
		case <-timer.C:
		}
	}
	select {
	case r := <-d.done:
		d.recordDial(r)
		return r, true
	default:
		return dialed{}, false
	}
}

// interval returns the minimum time from one dial to the next.
func (d *dialer) interval(connected bool) time.Duration {
	switch {
	case connected && d.addr.Network == "udp":
		return redial
	case connected:
		return math.MaxInt64
	}
	return d.pause
}

// recordDial records a dial's result, and sets the time to back off.
func (d *dialer) recordDial(r dialed) {
	d.clearDial()
	least := redialLocal
	if d.addr.Network == "tcp" || d.addr.Network == "udp" {
		least = redialFailed
	}
	d.pause = base.Backoff(d.failed, least, redialMost)
	if d.failed++; r.err == nil {
		d.failed = 0
	}
}

func (d *dialer) startDial(now time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), dialDeadline)
	d.begun, d.done, d.cancel = now, make(chan dialed, 1), cancel
	go func(done chan<- dialed) {
		conn, err := d.open(ctx, d.addr.Network, d.addr.Addr)
		if tcp, ok := conn.(*net.TCPConn); ok {
			boundUnacked(tcp, unackedFor)
		}
		done <- dialed{conn, err}
	}(d.done)
}

func (d *dialer) clearDial() {
	d.cancel()
	d.done, d.cancel = nil, nil
}

// stop stops the dial in progress.
func (d *dialer) stop() {
	if d.done == nil {
		return
	}
	d.cancel()
	if r := <-d.done; r.conn != nil {
		_ = r.conn.Close()
	}
	d.clearDial()
}
