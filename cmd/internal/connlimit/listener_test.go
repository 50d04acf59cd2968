package connlimit

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// starving is a listener of a process that has no file descriptor until free reports one.
type starving struct {
	net.Listener
	t    *testing.T
	free func() bool
}

func (s *starving) Accept() (net.Conn, error) {
	if !s.free() {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	near, far := net.Pipe()
	s.t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	return near, nil
}

func (s *starving) Close() error { return nil }

// Without a file descriptor, the connection that has been idle longest gives up its own, then a
// spare. Connections in use, or that have just come, are kept.
func TestNoDescriptor(t *testing.T) {
	for name, test := range map[string]struct {
		age      time.Duration // of the connection
		use      bool
		reserve  int
		accepted bool
		closed   bool
		reserved bool
		want     Stats // after Close
	}{
		"idle":            {2 * time.Second, false, 0, true, true, false, Stats{Connections: 1, Displaced: 1, Starved: 1}},
		"in use":          {2 * time.Second, true, 0, false, false, false, Stats{Connections: 1, Used: 1, Starved: 1}},
		"has just come":   {time.Second / 2, false, 0, false, false, false, Stats{Connections: 1, Starved: 1}},
		"spare":           {2 * time.Second, true, 1, true, false, true, Stats{Connections: 2, Used: 1, Starved: 1}},
		"idle, not spare": {2 * time.Second, false, 1, true, true, false, Stats{Connections: 1, Displaced: 1, Starved: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limiter := New(Config{Reserve: test.reserve})
				first := admit(t, limiter, "10.0.0.1")
				first.SetUsed(test.use)
				time.Sleep(test.age)
				l := limiter.Listener(&starving{t: t, free: func() bool {
					return isClosed(first) || limiter.Stats().Spares < int64(test.reserve)
				}})
				c, err := l.Accept()
				if (err == nil) != test.accepted || err != nil && !errors.Is(err, syscall.EMFILE) || isClosed(first) != test.closed {
					t.Errorf("%v, %v; closed: %v", c, err, isClosed(first))
				}
				if err == nil && c.(*Conn).Reserved != test.reserved {
					t.Errorf("reserved: %v", !test.reserved)
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
				if got := limiter.Stats(); got != test.want {
					t.Errorf("%+v, want %+v", got, test.want)
				}
			})
		})
	}
}
