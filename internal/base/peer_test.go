package base

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Peers are distinguished by their address, with IPv6 by their network, and on a Unix socket by
// their process.
func TestPeers(t *testing.T) {
	if PeerAt("10.0.0.1:1") != PeerAt("[::ffff:10.0.0.1]:2") || PeerAt("10.0.0.1:1") == PeerAt("10.0.0.2:1") {
		t.Error("IPv4")
	}
	if PeerAt("[2001:db8::1]:1") != PeerAt("[2001:db8::ffff]:1") || PeerAt("[2001:db8::1]:1") == PeerAt("[2001:db8:0:1::1]:1") {
		t.Error("IPv6")
	}
	if PeerAt("@") != (Peer{}) {
		t.Error("no address")
	}
	for network, address := range map[string]string{"unix": filepath.Join(t.TempDir(), "s"), "tcp": "127.0.0.1:0"} {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		theirs, err := net.Dial(network, l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer theirs.Close()
		ours, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer ours.Close()
		want := Peer{addr: netip.MustParseAddr("127.0.0.1")}
		if network == "unix" {
			want = Peer{}
			if runtime.GOOS == "linux" {
				want.process = int32(os.Getpid())
			}
		}
		if got := PeerOf(ours); got != want {
			t.Errorf("%s: the peer is %+v, want %+v", network, got, want)
		}
	}
}
