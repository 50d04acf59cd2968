package gateway

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/netip"
)

// Peers are the networks from which a door may be asked; none means all.
type Peers []netip.Prefix

// Allow reports whether a peer may connect. It always may by a Unix socket: the rights of the
// socket's directory decide who can.
func (p Peers) Allow(from net.Addr) bool {
	tcp, ok := from.(*net.TCPAddr)
	if !ok || len(p) == 0 {
		return true
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	for _, prefix := range p {
		if prefix.Contains(ip) {
			return true
		}
	}
	return false
}

// Token is what has to be sent to a door. The zero value asks for nothing.
type Token struct {
	sum    [sha256.Size]byte
	needed bool
}

// NewToken returns the token with this text. An empty one asks for nothing.
func NewToken(text string) Token {
	return Token{sum: sha256.Sum256([]byte(text)), needed: text != ""}
}

// Accepts reports whether the token was sent, in a time that does not depend on what was sent
// instead.
func (t *Token) Accepts(sent string) bool {
	if !t.needed {
		return true
	}
	sum := sha256.Sum256([]byte(sent))
	return subtle.ConstantTimeCompare(sum[:], t.sum[:]) == 1
}
