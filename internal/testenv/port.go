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
	blockSize   = 50
)

// block is where this process takes its ports from. No two processes have the same block: each
// listens on the first port of its own until it ends.
var block struct {
	sync.Mutex
	next, end int
	held      []net.Listener
}

// FreePort returns a port that is free on 127.0.0.1 for both TCP and UDP, and that no test has
// received before. A program that takes part in no test may still take it first.
func FreePort(tb testing.TB) int {
	tb.Helper()
	block.Lock()
	defer block.Unlock()
	for range 1000 {
		for ; block.next < block.end; block.next++ {
			if IsFree(block.next) {
				block.next++
				return block.next - 1
			}
		}
		first := lowestPort + blockSize*rand.IntN((highestPort-lowestPort)/blockSize)
		if held, err := net.Listen("tcp", Loopback(first)); err == nil {
			block.held = append(block.held, held)
			block.next, block.end = first+1, first+blockSize
		}
	}
	tb.Fatal("testenv: no free port found on 127.0.0.1 in 1000 tries")
	return 0
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
