//go:build !linux

package statsdsource

import (
	"errors"
	"syscall"
)

// errSharePort is returned outside Linux, where a system may pass all packets to one of the sockets
// that share a port.
var errSharePort = errors.New("this system cannot spread senders over several sockets: readers must be 1")

func sharePort(syscall.Conn) error { return errSharePort }

func controlSharePort(_, _ string, _ syscall.RawConn) error { return errSharePort }
