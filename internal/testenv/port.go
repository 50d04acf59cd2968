package testenv

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// Ports are taken below the range from which Linux (32768 and up) and macOS (49152 and up) serve
// outgoing connections. A port from that range, as ":0" gives, can be lost while a server
// restarts, since any outgoing connection may get it. Even a client that dials the dead server
// may get it and then talk to itself. The range also leaves room for servers that use port +
// 10000 as well.
const (
	lowestPort  = 15_000
	highestPort = 32_000
)

var handedOut sync.Map // ports

// FreePort returns a port that is free on 127.0.0.1 for both TCP and UDP, and that this process
// has not received before. Another process may still take it first, so the caller must be ready
// to try another.
func FreePort(tb testing.TB) int {
	tb.Helper()
	for range 1000 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		if takePort(port) {
			return port
		}
	}
	tb.Fatal("testenv: no free port found on 127.0.0.1 in 1000 tries")
	return 0
}

// takePort takes a port, if it is free.
func takePort(port int) bool {
	_, taken := handedOut.LoadOrStore(port, true)
	return !taken && IsFree(port)
}

// IsFree reports whether a port is free on 127.0.0.1 for both TCP and UDP.
func IsFree(port int) bool {
	addr := Loopback(port)
	stream, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	defer stream.Close()
	packet, err := net.ListenPacket("udp", addr)
	if err != nil {
		return false
	}
	defer packet.Close()
	return true
}

// Loopback returns the address of a port on 127.0.0.1.
func Loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// ErrPortTaken means that another process took the port first.
var ErrPortTaken = errors.New("another process has the port")

// OnFreePorts calls start, which chooses free ports and starts a server on them, until no other
// process takes a port first. It fails the test after five tries, or at any other error.
func OnFreePorts(tb testing.TB, server string, start func() error) {
	tb.Helper()
	var err error
	for range 5 {
		if err = start(); err == nil {
			return
		}
		if !errors.Is(err, ErrPortTaken) {
			break
		}
	}
	tb.Fatalf("testenv: start %s: %v", server, err)
}
