package base

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseAddrLevel(t *testing.T) {
	for name, good := range map[string]bool{
		"ip": true, "v4/24": true, "v4/1": true, "v4/32": true, "v6/48": true, "v6/128": true,
		"": false, "IP": false, "v4": false, "v4/": false, "v4/0": false, "v4/33": false, "v4/024": false, "v4/+24": false, "v6/129": false, "v5/24": false, "v4/24/": false, "ip/24": false,
	} {
		if _, ok := ParseAddrLevel(name); ok != good {
			t.Errorf("Parse(%q): %v, want %v", name, ok, good)
		}
	}
}

// reference returns an address's level as computed with package net, which shares no code with
// netip.
func reference(name string, ip net.IP) (string, bool) {
	family, digits, found := strings.Cut(name, "/")
	bits, _ := strconv.Atoi(digits)
	v4 := ip.To4()
	switch {
	case !found && v4 != nil:
		bits = 32
	case !found:
		bits = 64
	case (family == "v4") != (v4 != nil):
		return "", false
	}
	size := 128
	if v4 != nil {
		ip, size = v4, 32
	}
	network := net.IPNet{IP: ip.Mask(net.CIDRMask(bits, size)), Mask: net.CIDRMask(bits, size)}
	if bits == size {
		return network.IP.String(), true
	}
	return network.String(), true
}

func drawAddr(t *rapid.T) (netip.Addr, net.IP) {
	n := rapid.SampledFrom([]int{4, 16}).Draw(t, "size")
	b := rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "bytes")
	if n == 16 && rapid.Bool().Draw(t, "mapped") {
		copy(b, net.IPv4zero.To16()[:12])
	}
	ip, _ := netip.AddrFromSlice(b)
	return ip, net.IP(b)
}

func drawLevel(t *rapid.T) string {
	switch rapid.IntRange(0, 2).Draw(t, "family") {
	case 0:
		return "ip"
	case 1:
		return "v4/" + strconv.Itoa(rapid.IntRange(1, 32).Draw(t, "bits"))
	}
	return "v6/" + strconv.Itoa(rapid.IntRange(1, 128).Draw(t, "bits"))
}

func TestAddrLevelIsThatOfPackageNet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ip, ref := drawAddr(t)
		name := drawLevel(t)
		level, ok := ParseAddrLevel(name)
		if !ok {
			t.Fatal(name)
		}
		got, ok := level.Append(nil, ip)
		if want, has := reference(name, ref); string(got) != want || ok != has {
			t.Fatalf("%s of %v: %q, %v; want %q, %v", name, ip, got, ok, want, has)
		}
	})
}

// Widening the text of a level gives the wider level of the address.
func TestAddrLevelWiden(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ip, ref := drawAddr(t)
		narrow, wide := drawLevel(t), drawLevel(t)
		n, _ := ParseAddrLevel(narrow)
		w, _ := ParseAddrLevel(wide)
		text, has := reference(narrow, ref)
		if !has {
			return
		}
		got, ok := w.Widen(text)
		bits := func(name string) int {
			if _, digits, found := strings.Cut(name, "/"); found {
				n, _ := strconv.Atoi(digits)
				return n
			}
			if ref.To4() != nil {
				return 32
			}
			return 64
		}
		want, both := reference(wide, ref)
		if wider := both && bits(wide) < bits(narrow); ok != wider || ok && got != want {
			t.Fatalf("%s of %s=%s: %q, %v; want %q, %v", wide, narrow, text, got, ok, want, wider)
		}
		if overlaps := both || narrow == "ip" && wide == "ip" || (narrow == "ip") != (wide == "ip") || narrow[1] == wide[1]; n.Overlaps(w) != overlaps {
			t.Fatalf("%s and %s: overlap %v", narrow, wide, n.Overlaps(w))
		}
		_ = ip
	})
	for _, text := range []string{"", "x", "1.2.3", "::ffff:1.2.3.4", "fe80::1%eth0", "1.2.3.4/33"} {
		l, _ := ParseAddrLevel("v4/8")
		if got, ok := l.Widen(text); ok {
			t.Errorf("%q: %q", text, got)
		}
	}
}
