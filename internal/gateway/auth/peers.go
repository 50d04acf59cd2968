package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
)

// tokenHeader is where a gateway sends the door's token. It is not Authorization, in which
// the client's own credentials travel.
const tokenHeader = "X-Hotparam-Token"

// token is what a gateway has to send; the zero value asks for none.
type token struct {
	sum    [sha256.Size]byte
	needed bool
}

func newToken(secret string) token {
	return token{sum: sha256.Sum256([]byte(secret)), needed: secret != ""}
}

// allows reports whether a request has the token, in a time that does not depend on what it
// has instead.
func (t *token) allows(r *http.Request) bool {
	if !t.needed {
		return true
	}
	sent := sha256.Sum256([]byte(r.Header.Get(tokenHeader)))
	return subtle.ConstantTimeCompare(sent[:], t.sum[:]) == 1
}

// allowedListener accepts connections from some networks only, and from Unix sockets. It
// closes others at once.
type allowedListener struct {
	net.Listener
	allow   []netip.Prefix
	foreign *atomic.Int64
}

func (l *allowedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || l.allows(conn.RemoteAddr()) {
			return conn, err
		}
		l.foreign.Add(1)
		_ = conn.Close()
	}
}

func (l *allowedListener) allows(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || len(l.allow) == 0 {
		return true
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	for _, prefix := range l.allow {
		if prefix.Contains(ip) {
			return true
		}
	}
	return false
}
