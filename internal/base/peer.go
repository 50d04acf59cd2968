package base

import (
	"net"
	"net/netip"
)

// Peer says who has a connection, so that the places of a server can be shared: one peer that
// opens many connections must not lock out the others. It is an IPv4 address, an IPv6 network of 64 bits, or the process at the other end of a Unix
// socket. Peers are compared by ==.
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

// PeerAt returns the peer at an address with a port, as [net/http.Request] has it in RemoteAddr.
func PeerAt(address string) Peer {
	a, _ := netip.ParseAddrPort(address) // of a Unix socket it is "@"
	return peerAt(a.Addr())
}

func peerAt(a netip.Addr) Peer {
	if a = a.Unmap().WithZone(""); a.Is6() {
		network, _ := a.Prefix(64) // no error: 64 bits are not too many
		a = network.Addr()
	}
	return Peer{addr: a}
}

// PeerPlaces counts the connections of each peer.
type PeerPlaces map[Peer]int

// Gives reports whether a connection of holder may be closed for one of newcomer. It is of the
// peer that has most, if that is newcomer itself, or has two more at least. Where all have about
// as many, it is of one that has not fewer than newcomer.
func (p PeerPlaces) Gives(newcomer Peer) func(holder Peer) bool {
	most := newcomer
	for holder, n := range p {
		if n > p[most] {
			most = holder
		}
	}
	if most == newcomer && p[most] > 0 || p[most] >= p[newcomer]+2 {
		return func(holder Peer) bool { return holder == most }
	}
	return func(holder Peer) bool { return p[holder] >= p[newcomer] }
}

// Yields reports whether holder is to give up a connection that is in use for newcomer, who then
// has at most as many.
func (p PeerPlaces) Yields(holder, newcomer Peer) bool { return p[holder] >= p[newcomer]+2 }
