package keytext

import (
	"crypto/sha256"
	"encoding/hex"
)

// CutSuffix is the length of what ends a cut text: "~" and 128 bits in hex.
const CutSuffix = 1 + 2*16

// Cut shortens a text of over limit bytes to at most limit, as [CutAt] does.
// limit must be at least 64. The text is changed in place.
func Cut(text []byte, limit int) []byte {
	if len(text) <= limit {
		return text
	}
	return CutAt(text, limit-CutSuffix)
}

// CutAt keeps at most the first end bytes of a text, never half of a %HH, and
// adds "~" and the first 128 bits of the SHA-256 of the whole in lower-case hex,
// so that different texts stay different. The text is changed in place.
func CutAt(text []byte, end int) []byte {
	sum := sha256.Sum256(text)
	for back := 1; back <= 2 && back <= end; back++ {
		if text[end-back] == '%' {
			end -= back
			break
		}
	}
	return hex.AppendEncode(append(text[:end], '~'), sum[:16])
}

// IsCut reports whether a text was too long and ends in a hash. It is a name then, of
// which the last parameters cannot be recognised.
func IsCut(text []byte) bool {
	n := len(text) - CutSuffix
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
