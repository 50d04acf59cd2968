package peer

import (
	"net"

	"golang.org/x/sys/unix"
)

// processOf returns the process that connected to a Unix socket, or 0 if the system does not say.
func processOf(c *net.UnixConn) (pid int32) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if ucred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = ucred.Pid
		}
	})
	return pid
}
