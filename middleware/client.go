package middleware

import "github.com/hotparam/hotparam/internal/base"

// ClientKey returns the identity to limit a client by, given its address with or without a
// port: the IPv4 address, or the IPv6 /64 ("2001:db8:1:2::/64"), since one client usually has
// all addresses of a /64. If addr is not an address, ClientKey returns it unchanged. Rules have
// the same identity as addr:ip.
func ClientKey(addr string) string {
	ip, ok := parseNode(addr)
	if !ok {
		return addr
	}
	level, _ := base.ParseAddrLevel("ip")
	key, ok := level.Append(nil, ip)
	if !ok { // unreachable: every address has the level
		return addr
	}
	return string(key)
}
