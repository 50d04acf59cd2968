package statsdsource

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// sharePort lets other sockets of this user bind the port as well. The system passes all packets
// of a sender's socket to the same one of them.
func sharePort(conn syscall.Conn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	return controlSharePort("", "", raw)
}

// controlSharePort makes a socket share its port. It must be called before the socket is bound.
func controlSharePort(_, _ string, raw syscall.RawConn) error {
	var err error
	if controlErr := raw.Control(func(fd uintptr) {
		err = os.NewSyscallError("setsockopt SO_REUSEPORT", unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
	}); controlErr != nil {
		return controlErr
	}
	return err
}
