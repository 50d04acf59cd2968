package base

import (
	"crypto/sha256"
	"encoding/hex"
)

// CutKeySuffix is the length of the end of a cut text: "~" and 128 bits in hex.
const CutKeySuffix = 1 + 2*16

// CutKey shortens a text of over limit bytes to at most limit, as [CutKeyAt] does.
// limit must be at least 64. The text is changed in place.
func CutKey(text []byte, limit int) []byte {
	if len(text) <= limit {
		return text
	}
	return CutKeyAt(text, limit-CutKeySuffix)
}

// CutKeyAt keeps at most the first end bytes of a text, never half of a %HH. It appends "~" and
// the first 128 bits of the SHA-256 of the whole in lower-case hex, so that different texts stay
// different. The text is changed in place.
func CutKeyAt(text []byte, end int) []byte {
	sum := sha256.Sum256(text)
	for back := 1; back <= 2 && back <= end; back++ {
		if text[end-back] == '%' {
			end -= back
			break
		}
	}
	return hex.AppendEncode(append(text[:end], '~'), sum[:16])
}

// IsCutKey reports whether a text was too long and ends in a hash. The last parameters of such a
// text cannot be recognised.
func IsCutKey(text []byte) bool {
	n := len(text) - CutKeySuffix
	if n < 0 || text[n] != '~' {
		return false
	}
	for _, c := range text[n+1:] {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
