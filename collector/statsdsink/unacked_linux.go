package statsdsink

import (
	"net"
	"syscall"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT of linux/tcp.h, the same on all processors. Package
// syscall lacks it.
const tcpUserTimeout = 18

// boundUnacked breaks a connection when the other side has acknowledged nothing for d. The
// system's own bound is a quarter of an hour.
func boundUnacked(conn *net.TCPConn, d time.Duration) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(d.Milliseconds()))
	})
}
