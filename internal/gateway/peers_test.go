package gateway

import (
	"net"
	"net/netip"
	"testing"
)

func TestPeers(t *testing.T) {
	peers := Peers{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fe80::/64")}
	for addr, want := range map[string]bool{
		"10.1.2.3:4": true, "[::ffff:10.1.2.3]:4": true, "[fe80::1%eth0]:4": true, "11.1.2.3:4": false, "[fe80:1::1]:4": false,
	} {
		if got := peers.Allow(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr))); got != want {
			t.Errorf("%s: %v, want %v", addr, got, want)
		}
	}
	if !peers.Allow(&net.UnixAddr{Name: "@"}) || !Peers(nil).Allow(&net.TCPAddr{IP: net.IPv4(1, 2, 3, 4)}) {
		t.Error("a Unix socket, or all networks, are refused")
	}
}

func TestToken(t *testing.T) {
	none, token := NewToken(""), NewToken("secret")
	if !none.Accepts("") || !none.Accepts("x") || !token.Accepts("secret") || token.Accepts("") || token.Accepts("Secret") {
		t.Error("a token is not what it should be")
	}
}
