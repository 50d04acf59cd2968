package gateway

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/netip"
)

// Peers are the networks from which peers may connect to a door. An empty list allows all.
type Peers []netip.Prefix

// Allow reports whether a peer at the address may connect. Peers of a Unix socket always may: the
// permissions of the socket's directory restrict them.
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

// Token is the secret that a door's peers must send. The zero value accepts every peer.
type Token struct {
	sum    [sha256.Size]byte
	needed bool
}

// NewToken returns the token with the given text. If text is empty, it accepts every peer.
func NewToken(text string) Token {
	return Token{sum: sha256.Sum256([]byte(text)), needed: text != ""}
}

// Accepts reports whether sent is the token. It takes the same time wherever the two differ.
func (t *Token) Accepts(sent string) bool {
	if !t.needed {
		return true
	}
	sum := sha256.Sum256([]byte(sent))
	return subtle.ConstantTimeCompare(sum[:], t.sum[:]) == 1
}
