package base

// HexDigit returns the value of a hexadecimal digit in either case, as in percent-encoding
// (RFC 3986, section 2.1). ok is false for any other byte.
func HexDigit(c byte) (v byte, ok bool) {
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
