package wire

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/hotparam/hotparam/internal/base"
)

// Encoding selects how a key's canonical text is written inside a StatsD line. Both
// encodings round-trip any bytes up to their limit. The sender's encoding is a setting; a
// decoder does not guess.
type Encoding uint8

const (
	// Plain keeps = & ? / and percent-encodes the bytes that a StatsD line would misread:
	// . : | @ # , ; [ ] %, space, controls and everything that is not ASCII. It is for
	// hotparam's own listener and Kafka.
	Plain Encoding = iota
	// Strict keeps A-Z a-z 0-9 - = and writes every other byte as _HH. That survives the
	// original StatsD, which deletes & and %, and Graphite, whose components end at 251
	// bytes.
	Strict
)

// Limits of an encoded key in bytes. The limit of Plain makes a line fit a packet; the limit of
// Strict is the length that Graphite keeps of a component.
const (
	plainLimit  = 1024
	strictLimit = 251
)

// ErrEncoding means that an encoded key cannot have been written by the encoding.
var ErrEncoding = errors.New("wire: bad escape in key")

// ParseEncoding reads "plain" or "strict".
func ParseEncoding(s string) (Encoding, error) {
	switch s {
	case "plain", "":
		return Plain, nil
	case "strict":
		return Strict, nil
	}
	return 0, fmt.Errorf("encoding %q: want plain or strict", s)
}

// String returns the encoding's name in settings.
func (e Encoding) String() string {
	if e == Strict {
		return "strict"
	}
	return "plain"
}

// Limit returns the greatest length of an encoded key, in bytes.
func (e Encoding) Limit() int {
	if e == Strict {
		return strictLimit
	}
	return plainLimit
}

const upperHex = "0123456789ABCDEF"

var plainKeeps = func() (t [256]bool) {
	for c := '!'; c <= '~'; c++ {
		t[c] = true
	}
	for _, c := range ".:|@#,;[]%" {
		t[c] = false
	}
	return t
}()

var strictKeeps = func() (t [256]bool) {
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-=" {
		t[c] = true
	}
	return t
}()

func (e Encoding) table() (keeps *[256]bool, escape byte) {
	if e == Strict {
		return &strictKeeps, '_'
	}
	return &plainKeeps, '%'
}

// Append appends the encoded text.
func (e Encoding) Append(dst, text []byte) []byte {
	keeps, escape := e.table()
	for _, c := range text {
		if keeps[c] {
			dst = append(dst, c)
		} else {
			dst = append(dst, escape, upperHex[c>>4], upperHex[c&15])
		}
	}
	return dst
}

// Escapes reports whether an encoded key contains an escape. A key without one is the text
// itself.
func (e Encoding) Escapes(enc []byte) bool {
	_, escape := e.table()
	return bytes.IndexByte(enc, escape) >= 0
}

// AppendDecoded appends the text that is encoded as enc. Bytes that the encoding itself would
// have escaped are accepted unchanged, since other senders may be less careful. A broken escape
// is [ErrEncoding].
func (e Encoding) AppendDecoded(dst, enc []byte) ([]byte, error) {
	_, escape := e.table()
	for i := 0; i < len(enc); i++ {
		c := enc[i]
		if c == escape {
			if i+2 >= len(enc) {
				return dst, ErrEncoding
			}
			hi, ok1 := base.HexDigit(enc[i+1])
			lo, ok2 := base.HexDigit(enc[i+2])
			if !ok1 || !ok2 {
				return dst, ErrEncoding
			}
			c = hi<<4 | lo
			i += 2
		}
		dst = append(dst, c)
	}
	return dst, nil
}

// Fits reports whether the encoding of a text is within the limit, so that Fit leaves the text
// unchanged.
func (e Encoding) Fits(text []byte) bool {
	_, size := e.measure(text, 0)
	return size <= e.Limit()
}

// measure returns the size of a text's encoding, and the number of bytes of the text that are
// encoded within room. If the text certainly fits, it returns the upper bound 3*len(text).
func (e Encoding) measure(text []byte, room int) (end, size int) {
	if 3*len(text) <= e.Limit() {
		return 0, 3 * len(text)
	}
	keeps, _ := e.table()
	for i, c := range text {
		if keeps[c] {
			size++
		} else {
			size += 3
		}
		if size <= room {
			end = i + 1
		}
	}
	return end, size
}

// Fit shortens a text whose encoding would exceed the limit by [base.CutKeyAt], so that it keeps
// its identity. A text that fits is returned unchanged, so Fit(Fit(x)) = Fit(x). Counting and
// looking up must use the same fitted text. The text is changed in place.
func (e Encoding) Fit(text []byte) []byte {
	keeps, _ := e.table()
	room := e.Limit() - base.CutKeySuffix
	if !keeps['~'] {
		room -= 2
	}
	end, size := e.measure(text, room)
	if size <= e.Limit() {
		return text
	}
	return base.CutKeyAt(text, end)
}
