//go:build !linux

package statsdsink

import (
	"net"
	"time"
)

// boundUnacked does nothing: the system's bound holds.
func boundUnacked(*net.TCPConn, time.Duration) {}
