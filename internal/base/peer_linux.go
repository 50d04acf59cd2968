package base

import (
	"net"
	"syscall"
)

// processOf returns the process that connected to a Unix socket, or 0 if the system does not
// report it.
func processOf(c *net.UnixConn) (pid int32) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if ucred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			pid = ucred.Pid
		}
	})
	return pid
}
