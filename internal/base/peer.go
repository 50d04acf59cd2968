package base

import (
	"net"
	"net/netip"
)

// Peer identifies the other end of a connection. A server shares its places among peers, so that
// one peer that opens many connections does not lock out the others. A Peer is an IPv4 address,
// an IPv6 network of 64 bits, or the process at the other end of a Unix socket. Peers are
// compared by ==.
type Peer struct {
	addr    netip.Addr
	process int32
}

// PeerOf returns the peer of a connection.
func PeerOf(c net.Conn) Peer {
	if u, ok := c.(*net.UnixConn); ok {
		return Peer{process: processOf(u)}
	}
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return peerAt(a.AddrPort().Addr())
	}
	return Peer{}
}

// PeerAt returns the peer at an address with a port, in the form of RemoteAddr of [net/http.Request].
func PeerAt(address string) Peer {
	a, _ := netip.ParseAddrPort(address) // for a Unix socket, address is "@" and a is zero
	return peerAt(a.Addr())
}

func peerAt(a netip.Addr) Peer {
	if a = a.Unmap().WithZone(""); a.Is6() {
		network, _ := a.Prefix(64) // no error: 64 bits are valid for IPv6
		a = network.Addr()
	}
	return Peer{addr: a}
}

// PeerPlaces counts the connections of each peer.
type PeerPlaces map[Peer]int

// Gives returns a function that reports whether a connection of holder may be closed in favour of
// one of newcomer. If one peer has the most connections and is newcomer, or has at least two more
// than newcomer, only its connections may be closed. Otherwise those of any peer with at least as
// many as newcomer may be closed.
func (p PeerPlaces) Gives(newcomer Peer) func(holder Peer) bool {
	busiest := newcomer
	for holder, n := range p {
		if n > p[busiest] {
			busiest = holder
		}
	}
	if busiest == newcomer && p[busiest] > 0 || p[busiest] >= p[newcomer]+2 {
		return func(holder Peer) bool { return holder == busiest }
	}
	return func(holder Peer) bool { return p[holder] >= p[newcomer] }
}

// Yields reports whether holder must give up a connection in use in favour of newcomer, who then
// still has at most as many as holder.
func (p PeerPlaces) Yields(holder, newcomer Peer) bool { return p[holder] >= p[newcomer]+2 }
