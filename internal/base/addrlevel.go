package base

import (
	"net/netip"
	"strconv"
	"strings"
)

// AddrLevelHint lists the levels, for messages.
const AddrLevelHint = "addr:ip is the IPv4 address or the IPv6 /64; addr:v4/24 and addr:v6/48 are networks"

// AddrLevel is a level of an address: the address itself or a network that contains it. It is the
// number of leading bits that identify a client.
type AddrLevel struct{ v4, v6 int } // 0 if addresses of that family do not have the level

// ParseAddrLevel reads the name of a level: "ip" for the IPv4 address or the IPv6 /64, "v4/1"
// to "v4/32", or "v6/1" to "v6/128".
func ParseAddrLevel(name string) (AddrLevel, bool) {
	if name == "ip" {
		return AddrLevel{32, 64}, true
	}
	family, digits, _ := strings.Cut(name, "/")
	bits, err := strconv.Atoi(digits)
	if err != nil || bits < 1 || strconv.Itoa(bits) != digits { // each level has one spelling
		return AddrLevel{}, false
	}
	switch {
	case family == "v4" && bits <= 32:
		return AddrLevel{v4: bits}, true
	case family == "v6" && bits <= 128:
		return AddrLevel{v6: bits}, true
	}
	return AddrLevel{}, false
}

// Append appends the text that identifies an address on this level, "192.0.2.7" or
// "2001:db8:1:2::/64". ok is false if the address does not have the level.
func (l AddrLevel) Append(dst []byte, ip netip.Addr) (text []byte, ok bool) {
	ip = ip.Unmap().WithZone("")
	bits := l.bits(ip)
	if bits == 0 {
		return dst, false
	}
	if bits == ip.BitLen() {
		return ip.AppendTo(dst), true
	}
	network, err := ip.Prefix(bits)
	if err != nil { // impossible, since the bits belong to the family
		return dst, false
	}
	return network.AppendTo(dst), true
}

func (l AddrLevel) bits(ip netip.Addr) int {
	if ip.Is4() {
		return l.v4
	}
	return l.v6
}

// Overlaps reports whether some address has both levels.
func (l AddrLevel) Overlaps(m AddrLevel) bool { return l.v4 > 0 && m.v4 > 0 || l.v6 > 0 && m.v6 > 0 }

// Equals reports whether both levels are the same for some address.
func (l AddrLevel) Equals(m AddrLevel) bool {
	return l.v4 > 0 && l.v4 == m.v4 || l.v6 > 0 && l.v6 == m.v6
}

// Widen returns the text on level l of the addresses that have the given text on a level with
// more bits. ok is false if there is none.
func (l AddrLevel) Widen(text string) (wider string, ok bool) {
	ip, err := netip.ParseAddr(text)
	bits := 0
	if err == nil {
		bits = ip.BitLen()
	} else {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return "", false
		}
		ip, bits = network.Addr(), network.Bits()
	}
	if ip.Is4In6() || ip.Zone() != "" || l.bits(ip) >= bits {
		return "", false
	}
	b, ok := l.Append(nil, ip)
	return string(b), ok
}
