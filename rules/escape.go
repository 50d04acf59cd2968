package rules

import "github.com/hotparam/hotparam/internal/base"

// Canonical text has the unreserved bytes of RFC 3986 unchanged and every other byte as %HH in
// upper case.

const upperHex = "0123456789ABCDEF"

// unreserved are the bytes that are written unchanged.
var unreserved = func() (t [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~") {
		t[c] = true
	}
	return t
}()

// appendEscaped appends s with every byte but the unreserved ones as %HH.
func appendEscaped(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; unreserved[c] {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return dst
}

// appendDecoded appends s with %HH decoded; an invalid % is kept. A + is a space in a form, and a
// + in a path.
func appendDecoded(dst []byte, s string, form bool) []byte {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '+' && form:
			c = ' '
		case c == '%':
			if b, ok := unhex(s[i:]); ok {
				c = b
				i += 2
			}
		}
		dst = append(dst, c)
	}
	return dst
}

// unhex decodes the %HH at the start of s.
func unhex(s string) (byte, bool) {
	if len(s) < 3 {
		return 0, false
	}
	hi, ok1 := base.HexDigit(s[1])
	lo, ok2 := base.HexDigit(s[2])
	return hi<<4 | lo, ok1 && ok2
}

// pathSafe are the bytes of a path that are not escaped: RFC 3986 pchar and the slash.
var pathSafe = func() (t [256]bool) {
	t = unreserved
	for _, c := range []byte("!$&'()*+,;=:@/") {
		t[c] = true
	}
	return t
}()

// AppendPath appends an escaped path in canonical form. Escapes of unreserved bytes are decoded
// (%7e is ~), other escapes are in upper case, and bytes that are not valid in a path are
// escaped.
func AppendPath(dst []byte, path string) []byte {
	for i := 0; i < len(path); i++ {
		c := path[i]
		switch {
		case pathSafe[c]:
			dst = append(dst, c)
			continue
		case c == '%':
			if b, ok := unhex(path[i:]); ok {
				c = b
				i += 2
				if unreserved[c] {
					dst = append(dst, c)
					continue
				}
			}
		}
		dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
	}
	return dst
}
