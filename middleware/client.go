package middleware

import "net/netip"

// ClientKey returns the identity by which to limit a client, from its address with or
// without a port: the IPv4 address, or the IPv6 /64 ("2001:db8:1:2::/64"), since one client
// usually has all addresses of a /64. It returns addr if that is not an address.
func ClientKey(addr string) string {
	ip, err := netip.ParseAddr(addr)
	if err != nil {
		hostPort, err := netip.ParseAddrPort(addr)
		if err != nil {
			return addr
		}
		ip = hostPort.Addr()
	}
	if ip = ip.Unmap(); ip.Is4() {
		return ip.String()
	}
	net, err := ip.WithZone("").Prefix(64)
	if err != nil { // an IPv6 address has one
		return addr
	}
	return net.String()
}
