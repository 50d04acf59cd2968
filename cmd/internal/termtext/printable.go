package termtext

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Keys, instances, routes, callers and the answers of Redis are text that others wrote. On a
// terminal it must not move the cursor, change colours or reverse the line.

// Printable returns text with each rune that a terminal does not show as a character replaced by
// U+FFFD: control characters, including C1, directions, and line and paragraph separators.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}

// NewEscapingWriter returns a writer to w that writes \u escapes for the characters that a
// terminal does not show, except for line feeds and tabs. JSON keeps its meaning, as it has such
// characters only within strings. Each Write must consist of whole characters.
func NewEscapingWriter(w io.Writer) io.Writer { return escapingWriter{w} }

type escapingWriter struct{ w io.Writer }

// Write implements io.Writer.
func (p escapingWriter) Write(text []byte) (int, error) {
	escaped := make([]byte, 0, len(text))
	for tail := text; len(tail) > 0; {
		r, size := utf8.DecodeRune(tail)
		switch {
		case r == '\n' || r == '\t' || unicode.IsPrint(r) && (r != utf8.RuneError || size > 1):
			escaped = append(escaped, tail[:size]...)
		case r > 0xFFFF: // as a surrogate pair
			high, low := 0xD800+(r-0x10000)>>10, 0xDC00+(r-0x10000)&0x3FF
			escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, high, low)
		default:
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		}
		tail = tail[size:]
	}
	if _, err := p.w.Write(escaped); err != nil {
		return 0, err
	}
	return len(text), nil
}
