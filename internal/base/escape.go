package base

// Keys have the unreserved bytes of RFC 3986 unchanged and every other byte as %HH in
// upper case.

// UpperHex are the digits of escapes.
const UpperHex = "0123456789ABCDEF"

// Unreserved are the bytes that are written unchanged.
var Unreserved = func() (t [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~") {
		t[c] = true
	}
	return t
}()

// AppendEscaped appends s with every byte but the unreserved ones as %HH.
func AppendEscaped(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; Unreserved[c] {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', UpperHex[c>>4], UpperHex[c&15])
		}
	}
	return dst
}

// AppendDecoded appends s with %HH decoded; an invalid % is kept. A + is a space in a form, and a
// + in a path.
func AppendDecoded(dst []byte, s string, form bool) []byte {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '+' && form:
			c = ' '
		case c == '%':
			if b, ok := Unhex(s[i:]); ok {
				c = b
				i += 2
			}
		}
		dst = append(dst, c)
	}
	return dst
}

// Unhex decodes the %HH at the start of s.
func Unhex(s string) (byte, bool) {
	if len(s) < 3 {
		return 0, false
	}
	hi, ok1 := HexDigit(s[1])
	lo, ok2 := HexDigit(s[2])
	return hi<<4 | lo, ok1 && ok2
}

// pathSafe are the bytes of a path that are not escaped: RFC 3986 pchar and the slash.
var pathSafe = func() (t [256]bool) {
	t = Unreserved
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
			if b, ok := Unhex(path[i:]); ok {
				c = b
				i += 2
				if Unreserved[c] {
					dst = append(dst, c)
					continue
				}
			}
		}
		dst = append(dst, '%', UpperHex[c>>4], UpperHex[c&15])
	}
	return dst
}

// LowerFrom changes the ASCII capitals in b, from start on, to lower case.
func LowerFrom(b []byte, start int) []byte {
	for i := start; i < len(b); i++ {
		if c := b[i]; 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return b
}
