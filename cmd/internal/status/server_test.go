package status

import (
	"net"
	"testing"
)

func TestReachable(t *testing.T) {
	for listener, want := range map[string]string{"0.0.0.0": "127.0.0.1:80", "::": "[::1]:80", "127.0.0.2": "127.0.0.2:80"} {
		if got := reachable(&net.TCPAddr{IP: net.ParseIP(listener), Port: 80}); got != want {
			t.Errorf("%s is reached at %s, want %s", listener, got, want)
		}
	}
}
