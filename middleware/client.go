package middleware

import "net/netip"

// ClientKey returns the identity to limit a client by, from an address with or without a
// port: the IPv4 address, or the IPv6 /64, which is what one client has
// ("2001:db8:1:2::/64"). What is no address is returned as it is.
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
