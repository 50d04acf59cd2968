package wire

import (
	"strconv"

	"github.com/hotparam/hotparam/internal/base"
)

// leadingHex cuts a hexadecimal number of at most 16 digits off a text, up to a dot or the end.
// more reports whether there was a dot.
func leadingHex(text []byte) (n uint64, tail []byte, more, ok bool) {
	for i, c := range text {
		if c == '.' {
			return n, text[i+1:], true, 0 < i && i <= 16
		}
		digit, isHex := base.HexDigit(c)
		if !isHex {
			return 0, nil, false, false
		}
		n = n<<4 | uint64(digit)
	}
	return n, nil, false, 0 < len(text) && len(text) <= 16
}

// parseHex reads a hexadecimal number of at most 16 digits.
func parseHex(s []byte) (uint64, bool) {
	n, _, more, ok := leadingHex(s)
	return n, ok && !more
}

func parseUint(s []byte) (uint64, bool) {
	n, err := strconv.ParseUint(string(s), 10, 64)
	return n, err == nil
}

// parseInt reads a number that is not negative.
func parseInt(s []byte) (int64, bool) {
	if n, ok := digits(s); ok {
		return n, true
	}
	n, err := strconv.ParseInt(string(s), 10, 64)
	return n, err == nil && n >= 0
}
