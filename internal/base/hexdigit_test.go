package base

import (
	"strconv"
	"testing"
)

func TestHexDigitIsThatOfStrconv(t *testing.T) {
	for c := range 256 {
		want, err := strconv.ParseUint(string([]byte{byte(c)}), 16, 8)
		if got, ok := HexDigit(byte(c)); ok != (err == nil) || ok && uint64(got) != want {
			t.Errorf("%q: %d, %v; want %d, %v", byte(c), got, ok, want, err)
		}
	}
}
