//go:build !linux

package statsdsource

import (
	"errors"
	"syscall"
)

// canSharePort is false: outside Linux, a system may pass all packets to one of the sockets that
// share a port.
const canSharePort = false

func sharePort(syscall.Conn) error { return errors.ErrUnsupported }

func controlSharePort(_, _ string, _ syscall.RawConn) error { return errors.ErrUnsupported }
