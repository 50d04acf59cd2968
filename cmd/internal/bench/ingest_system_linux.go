package bench

import (
	"net"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// canSharePort reports whether the system spreads senders over sockets that share a port.
const canSharePort = true

// sharePort makes a socket share its port. It must be called before the socket is bound.
func sharePort(_, _ string, raw syscall.RawConn) error {
	var err error
	if controlErr := raw.Control(func(fd uintptr) {
		err = os.NewSyscallError("setsockopt SO_REUSEPORT", unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
	}); controlErr != nil {
		return controlErr
	}
	return err
}

// canSegment reports whether the system can split a message into packets.
const canSegment = true

// segments returns the control message that makes the system split a message into packets of a
// size (UDP_SEGMENT), or nil if it cannot.
func segments(conn *net.UDPConn, size int) []byte {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil
	}
	_ = raw.Control(func(fd uintptr) { _, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT) })
	if err != nil {
		return nil
	}
	b := make([]byte, unix.CmsgSpace(2))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	h.Level, h.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
	h.SetLen(unix.CmsgLen(2))
	*(*uint16)(unsafe.Pointer(&b[unix.CmsgLen(0)])) = uint16(size)
	return b
}

// exactSleep makes the thread of this goroutine wake on time. By default it wakes up to 50 µs
// late, so that packets would be sent several at a time.
func exactSleep() {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // an error only makes it less exact
}

// pause sleeps for d.
func pause(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil)
}
