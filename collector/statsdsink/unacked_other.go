//go:build !linux

package statsdsink

import (
	"net"
	"time"
)

// boundUnacked leaves the bound to the system.
func boundUnacked(*net.TCPConn, time.Duration) {}
