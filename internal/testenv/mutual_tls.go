package testenv

import (
	"crypto/tls"
	"fmt"
	"net"
	"testing"
)

// SecureDoor is a door that requires TLS and a client certificate.
type SecureDoor struct {
	Addr string
	// Ask asks the door with a client's TLS configuration and returns an error if it gets no
	// answer.
	Ask func(tb testing.TB, client *tls.Config) error
	// NoTLS returns the number of connections that ended before a TLS handshake succeeded.
	NoTLS func() int64
}

// MutualTLS checks that the door opened by open answers only clients of its authority and counts
// the others.
func MutualTLS(t *testing.T, open func(tb testing.TB, server *tls.Config) SecureDoor) {
	files, others := Certificates(t), Certificates(t)
	door := open(t, files.Server(t))
	none, other := files.Config(t), files.Config(t)
	none.Certificates = nil
	other.Certificates = others.Config(t).Certificates
	for _, client := range []struct {
		name    string
		config  *tls.Config
		refused bool
	}{
		{name: "a certificate of the authority", config: files.Config(t)},
		{name: "no certificate", config: none, refused: true},
		{name: "a certificate of another authority", config: other, refused: true},
		{name: "a certificate that has expired", config: files.Expired(t), refused: true},
		{name: "the first again", config: files.Config(t)},
	} {
		before := door.NoTLS()
		switch err := door.Ask(t, client.config); {
		case !client.refused && err != nil:
			t.Errorf("%s: %v", client.name, err)
		case client.refused && err == nil:
			t.Errorf("%s: the door has answered", client.name)
		}
		if client.refused {
			door.awaitCount(t, client.name, before+1)
		} else if got := door.NoTLS(); got != before {
			t.Errorf("%s: counted as none", client.name)
		}
	}
	before := door.NoTLS()
	for text, counted := range map[string]int64{"": 0, "GET / HTTP/1.1\r\nHost: a\r\n\r\n": 1} { // the first one is like a check of the port
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", door.Addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Error(err)
		}
		conn.Close()
		before += counted
		door.awaitCount(t, "plain text", before)
	}
}

// awaitCount waits until want connections are counted, since clients notice the end of a
// connection first.
func (d *SecureDoor) awaitCount(t *testing.T, kind string, want int64) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%s: %d connections are counted", kind, want), func() bool { return d.NoTLS() >= want })
	if got := d.NoTLS(); got != want {
		t.Errorf("%s: %d connections are counted, want %d", kind, got, want)
	}
}
