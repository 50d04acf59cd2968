package statsdsource

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hotparam/hotparam/internal/decode"
)

// packetSocket is a packet socket outside the runtime's poller: a read blocks its thread. The
// poller is edge-triggered, and a thread of the runtime always waits in it. So each packet would
// wake that thread, even while the reader is busy or naps. Without those wake-ups, and with
// naps, 50,000 packets a second take about half the processor time.
type packetSocket struct {
	addr net.Addr
	file unixSocket // removed with the socket

	using  sync.Mutex // held while fd is used, so that no caller uses a descriptor that was reused for another file
	fd     int
	closed atomic.Bool
}

// newPacketSocket takes the socket of conn and closes conn, which removes the socket from the
// poller. The net package opens the socket, since it knows how addresses are bound.
func newPacketSocket(conn packetConn, file unixSocket) (*packetSocket, error) {
	s := &packetSocket{addr: conn.LocalAddr(), file: file, fd: -1}
	raw, err := conn.SyscallConn()
	if err == nil {
		var dupErr error
		err = raw.Control(func(fd uintptr) { s.fd, dupErr = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
		err = errors.Join(err, os.NewSyscallError("fcntl F_DUPFD_CLOEXEC", dupErr))
	}
	if err = errors.Join(err, conn.Close()); err == nil {
		err = os.NewSyscallError("fcntl F_SETFL", unix.SetNonblock(s.fd, false))
	}
	if err == nil {
		// Readers notice the end, and shards get the time, even if no packets arrive.
		tick := unix.NsecToTimeval(int64(decode.Tick))
		err = os.NewSyscallError("setsockopt SO_RCVTIMEO", unix.SetsockoptTimeval(s.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tick))
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// withDescriptor calls f with the descriptor, or returns [net.ErrClosed].
func (s *packetSocket) withDescriptor(f func(fd int)) error {
	s.using.Lock()
	defer s.using.Unlock()
	if s.closed.Load() {
		return net.ErrClosed
	}
	f(s.fd)
	return nil
}

func (s *packetSocket) isUDP() bool {
	_, ok := s.addr.(*net.UDPAddr)
	return ok
}

// setReadBuffer requests a buffer of this many bytes.
func (s *packetSocket) setReadBuffer(bytes int) error {
	var err error
	return errors.Join(s.withDescriptor(func(fd int) { err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, bytes) }), err)
}

// interrupt does nothing: a read returns within a tick.
func (s *packetSocket) interrupt() {}

// waitUntil does nothing, as interrupt does.
func (s *packetSocket) waitUntil(time.Time) {}

// close closes the socket after the read in progress, which it makes return at once.
func (s *packetSocket) close() error {
	if s.closed.Swap(true) {
		return nil
	}
	err := s.file.remove()
	if s.fd < 0 {
		return err
	}
	_ = unix.Shutdown(s.fd, unix.SHUT_RD) // returns ENOTCONN, but wakes the reader
	s.using.Lock()
	defer s.using.Unlock()
	return errors.Join(err, os.NewSyscallError("close", syscall.Close(s.fd)))
}
