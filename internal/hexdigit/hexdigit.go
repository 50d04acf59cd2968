// Package hexdigit reads the digits of percent-encoding, in either case (RFC 3986, 2.1).
package hexdigit

// Value returns the value of a hexadecimal digit; ok is false for any other byte.
func Value(c byte) (v byte, ok bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
