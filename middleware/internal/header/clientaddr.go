package header

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/hotparam/hotparam/rules"
)

// maxHops is the maximum number of proxies that are searched for a client's address.
const maxHops = 100

// ClientAddr returns the address of the client that sent a request. It begins with the
// connection's peer. While the address is a trusted proxy's, it continues with the address
// that this proxy has written into the header. An entry without an address ends the search,
// and the proxy that wrote it counts as the client. ok is false if there is no address at all,
// as for a peer on a Unix socket.
func ClientAddr(c *rules.Client, r *http.Request) (ip netip.Addr, ok bool) {
	ip, ok = ParseNode(r.RemoteAddr)
	if c.Header == "" || ok && !isTrusted(c, ip) || !ok && !(c.TrustUnix && isUnix(r.RemoteAddr)) {
		return ip, ok
	}
	hops := hops{forwarded: c.Header == rules.Forwarded}
	if hops.forwarded {
		hops.lines = r.Header["Forwarded"]
	} else {
		hops.lines = r.Header["X-Forwarded-For"]
	}
	for range maxHops {
		entry, found := hops.next()
		if !found {
			break
		}
		if hops.forwarded {
			if entry, found = forwardedFor(entry); !found {
				break
			}
		}
		before, known := ParseNode(entry)
		if !known {
			break
		}
		if ip, ok = before, true; !isTrusted(c, ip) {
			break
		}
	}
	return ip, ok
}

func isTrusted(c *rules.Client, ip netip.Addr) bool {
	return slices.ContainsFunc(c.Trusted, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// isUnix reports whether remoteAddr is in the form that net/http uses for a peer on a Unix
// socket.
func isUnix(remoteAddr string) bool {
	return remoteAddr == "" || remoteAddr[0] == '@' || remoteAddr[0] == '/'
}

// ParseNode reads an address with or without a port, in brackets or not, and drops its zone:
// "192.0.2.7", "192.0.2.7:80", "2001:db8::1", "[2001:db8::1]:80". IPv4 written as IPv6
// becomes IPv4. A port follows RFC 7239, section 6: digits, or a name that begins with "_".
func ParseNode(s string) (ip netip.Addr, ok bool) {
	const longest = 128 // since a zone may have any length
	if s == "" || len(s) > longest {
		return ip, false
	}
	host, port, bracketed := s, "", s[0] == '['
	if bracketed {
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return ip, false
		}
		host, port = s[1:end], s[end+1:]
		if port != "" && (port[0] != ':' || !isPort(port[1:])) {
			return ip, false
		}
	} else if colon := strings.IndexByte(s, ':'); colon >= 0 && strings.LastIndexByte(s, ':') == colon {
		if host, port = s[:colon], s[colon+1:]; !isPort(port) {
			return ip, false
		}
	}
	v6 := strings.IndexByte(host, ':') >= 0
	if zone := strings.IndexByte(host, '%'); zone >= 0 && v6 {
		host = host[:zone]
	}
	if bracketed != v6 && (bracketed || port != "") || !mayBeAddr(host) {
		return ip, false
	}
	ip, err := netip.ParseAddr(host)
	return ip.Unmap(), err == nil
}

// mayBeAddr rejects nearly everything that is not an address, since ParseAddr's error allocates.
func mayBeAddr(s string) bool {
	separated := false
	for i := range len(s) {
		switch c := s[i]; {
		case c == '.' || c == ':':
			separated = true
		case '0' <= c && c <= '9', 'a' <= c|0x20 && c|0x20 <= 'f':
		default:
			return false
		}
	}
	return separated
}

func isPort(s string) bool {
	if s == "" {
		return false
	}
	if s[0] == '_' {
		return true
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return len(s) <= 5
}
