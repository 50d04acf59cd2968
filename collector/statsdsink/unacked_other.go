//go:build !linux

package statsdsink

import (
	"net"
	"time"
)

// boundUnacked does nothing: the bound is the system's.
func boundUnacked(*net.TCPConn, time.Duration) {}
