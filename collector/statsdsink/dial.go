package statsdsink

import (
	"context"
	"math"
	"net"
	"time"

	"github.com/hotparam/hotparam/internal/backoff"
	"github.com/hotparam/hotparam/wire"
)

// dialer makes connections to an address beside the goroutine that uses them, so
// that a slow name server holds nobody up.
type dialer struct {
	addr   wire.Address
	open   func(ctx context.Context, network, addr string) (net.Conn, error)
	begun  time.Time          // when it was dialled last
	pause  time.Duration      // after that, where there is no connection
	failed int                // dials in a row
	wait   time.Duration      // how long the next connection is worth waiting for
	done   chan dialed        // of the dial that is under way, or nil
	cancel context.CancelFunc // of the same
}

type dialed struct {
	conn net.Conn
	err  error
}

const (
	// redial is how often a name is looked up again while its address is in use by
	// datagrams: nothing tells that it has moved. The new socket has another port of
	// its own, too, so that what stands between does not keep to a machine that is
	// gone. A stream is told.
	redial = 30 * time.Second
	// redialFailed and redialLocal are the time between dials where there is no
	// connection, for names and for paths, doubled after each that failed up to
	// redialMost; up to a half less by chance, so that not all instances dial at
	// once.
	redialFailed = time.Second
	redialLocal  = 100 * time.Millisecond
	redialMost   = 2 * time.Second

	dialDeadline = 2 * time.Second
	// firstWait is how long the first packet waits for its connection.
	firstWait = 200 * time.Millisecond
	// unackedFor is how long a stream goes on while the other machine acknowledges
	// nothing: all that is sent meanwhile is lost, and told as sent.
	unackedFor = 10 * time.Second
)

// dial begins to dial when it is time to, and returns the outcome of a dial if there
// is one.
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

// interval returns how long after a dial the next one may begin.
func (d *dialer) interval(connected bool) time.Duration {
	switch {
	case connected && d.addr.Network == "udp":
		return redial
	case connected:
		return math.MaxInt64
	}
	return d.pause
}

// recordDial records a dial's outcome, and how long to back off.
func (d *dialer) recordDial(r dialed) {
	d.clearDial()
	least := redialLocal
	if d.addr.Network == "tcp" || d.addr.Network == "udp" {
		least = redialFailed
	}
	d.pause = backoff.After(d.failed, least, redialMost)
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

// stop ends the dial that is under way.
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
