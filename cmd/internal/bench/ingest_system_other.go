//go:build !linux

package bench

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// canSharePort is false where the system delivers all packets to one of the sockets that share a
// port.
const canSharePort = false

func sharePort(string, string, syscall.RawConn) error { return errors.ErrUnsupported }

const canSegment = false

func segments(*net.UDPConn, int) []byte { return nil }

func exactSleep() {}

func pause(d time.Duration) { time.Sleep(d) }
