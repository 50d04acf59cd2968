//go:build !linux

package collector

import (
	"net"
	"time"
)

// boundUnacked leaves the bound to the system.
func boundUnacked(*net.TCPConn, time.Duration) {}
