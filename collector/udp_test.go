package collector

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// fakeConn is a socket that fails with err, and counts what was written.
type fakeConn struct {
	net.Conn
	err    error
	writes int
	closed bool
}

func (c *fakeConn) Write(p []byte) (int, error) {
	c.writes++
	if errors.Is(c.err, os.ErrDeadlineExceeded) {
		time.Sleep(sendDeadline)
	}
	return len(p), c.err
}

func (c *fakeConn) SetWriteDeadline(time.Time) error { return nil }

func (c *fakeConn) Close() error {
	c.closed = true
	return nil
}

// A socket that takes nothing holds others up for one deadline in a second.
func TestStuckSocketIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &fakeConn{err: os.ErrDeadlineExceeded}
		u := &udpSender{addr: "a:1", conn: conn, next: time.Now().Add(redial)}
		start := time.Now()
		for range 1000 {
			if _, err := u.Send(nil); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Millisecond)
		}
		if took := time.Since(start) - 5*time.Second; conn.writes > 6 || took > 6*sendDeadline {
			t.Errorf("%d writes, which took %v in 5 s", conn.writes, took)
		}
		conn.err = nil
		time.Sleep(stuckFor)
		if _, err := u.Send(nil); err != nil {
			t.Errorf("after the rest: %v", err)
		}
	})
}

// While a name is looked up, packets go by the old socket, or fail at once; what
// comes of it is taken by the next packet.
func TestDialDoesNotHoldUpPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, fresh := &fakeConn{}, &fakeConn{}
		u := &udpSender{addr: "a:1", conn: old, next: time.Now(), dialed: make(chan dialed, 1)}
		start := time.Now()
		if _, err := u.Send(nil); err != nil || old.writes != 1 {
			t.Errorf("by the old socket: %v, %d packets", err, old.writes)
		}
		u.dialed <- dialed{err: errors.New("no such host")}
		if _, err := u.Send(nil); err != nil || old.writes != 2 || old.closed {
			t.Errorf("after a dial that failed: %v, %d packets", err, old.writes)
		}
		if u.dialed != nil || !u.next.Equal(start.Add(redialFailed)) {
			t.Errorf("the next dial is in %v", u.next.Sub(start))
		}
		u.dialed = make(chan dialed, 1)
		u.dialed <- dialed{conn: fresh}
		if _, err := u.Send(nil); err != nil || fresh.writes != 1 || !old.closed {
			t.Errorf("by the new socket: %v, %d packets", err, fresh.writes)
		}
		none := &udpSender{addr: "a:1", next: time.Now(), err: errors.New("no such host"), dialed: make(chan dialed, 1)}
		if _, err := none.Send(nil); err == nil {
			t.Error("a packet went by no socket")
		}
		late := &fakeConn{}
		none.dialed <- dialed{conn: late}
		if err := none.Close(); err != nil || !late.closed {
			t.Errorf("a dial that ended after Close was called: %v, closed %v", err, late.closed)
		}
		if time.Since(start) != 0 {
			t.Errorf("held up for %v", time.Since(start))
		}
	})
}
