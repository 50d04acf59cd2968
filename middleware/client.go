package middleware

import "net/netip"

// ClientKey is by what to tell clients apart, by an address with or without a port:
// an IPv4 address as it is, of an IPv6 address its /64, which is what one client has
// ("2001:db8:1:2::/64"). What is no address is told as it is.
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
