package gateway

import (
	"net"
	"net/netip"
	"sync/atomic"
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

func TestListenerOfPeers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var foreign atomic.Int64
	only := Peers{netip.MustParsePrefix("10.0.0.0/8")}.Listener(l, &foreign)
	accepted := make(chan error)
	go func() {
		_, err := only.Accept()
		accepted <- err
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection of another network was not closed")
	}
	_ = conn.Close()
	_ = only.Close()
	if err := <-accepted; err == nil || foreign.Load() != 1 {
		t.Errorf("%v, %d foreign ones, want 1", err, foreign.Load())
	}
}

func TestToken(t *testing.T) {
	none, token := NewToken(""), NewToken("secret")
	if !none.Accepts("") || !none.Accepts("x") || !token.Accepts("secret") || token.Accepts("") || token.Accepts("Secret") {
		t.Error("a token is not what it should be")
	}
}
