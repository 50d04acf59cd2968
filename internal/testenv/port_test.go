package testenv

import (
	"net"
	"testing"
)

func TestFreePortsDifferAndCanBeBound(t *testing.T) {
	seen := make(map[int]bool)
	for range 20 {
		port := FreePort(t)
		if seen[port] {
			t.Fatalf("port %d was given twice", port)
		}
		seen[port] = true
		stream, err := net.Listen("tcp", Loopback(port))
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		packet, err := net.ListenPacket("udp", Loopback(port))
		if err != nil {
			t.Fatal(err)
		}
		defer packet.Close()
		if IsFree(port) {
			t.Errorf("port %d counts as free while it is bound", port)
		}
	}
}
