package wire

import (
	"bytes"
	"errors"
	"math"
	"strconv"
)

// MaxPacket is the most bytes of a packet: what fits an Ethernet frame with
// room for tunnels.
const MaxPacket = 1432

// MaxCount is the highest count of one line; beyond it a line is malformed. Sums
// of counts in a window then stay far from overflowing.
const MaxCount = 1 << 40

// marker stands between a line's prefix and its key.
const marker = ".hot_param."

// Reasons why a line is not a count. They are values to count by, too.
var (
	ErrMalformed  = errors.New("wire: malformed line")
	ErrForeign    = errors.New("wire: not a hot_param line")
	ErrNotCounter = errors.New("wire: not a counter")
	ErrNegative   = errors.New("wire: negative count")
)

// AppendKey appends ".hot_param.{key}" to a prefix, the text encoded.
func AppendKey(dst []byte, e Encoding, text []byte) []byte {
	dst = append(dst, marker...)
	return e.Append(dst, text)
}

// Line is one count as it came: views into the packet.
type Line struct {
	Prefix []byte
	Key    []byte // encoded
	N      int64
}

// ParseLine reads one line without its newline:
//
//	name:value[:value…]|c[|@rate][|#tags][|…]
//
// Several values are added up; a sampling rate divides them; tags and fields
// that it does not know are passed over. Values may be fractions; the sum is
// rounded to whole counts.
func ParseLine(line []byte) (Line, error) {
	at := bytes.Index(line, []byte(marker))
	if at < 0 {
		if bytes.IndexByte(line, ':') < 0 || bytes.IndexByte(line, '|') < 0 {
			return Line{}, ErrMalformed
		}
		return Line{}, ErrForeign
	}
	l := Line{Prefix: line[:at]}
	rest := line[at+len(marker):]
	colon := bytes.IndexByte(rest, ':')
	if colon <= 0 || at == 0 {
		return Line{}, ErrMalformed
	}
	l.Key, rest = rest[:colon], rest[colon+1:]
	n, err := parseValue(rest)
	l.N = n
	return l, err
}

// CutCount reads a line of the plainest form, head key:n|c, as nearly all are: a
// head that is known, a whole count, no tags. It is not ok for every other line,
// which [ParseLine] has to judge. The head is a prefix with the marker, as
// [AppendKey] makes it of no text.
func CutCount(line []byte, head string) (key []byte, n int64, ok bool) {
	end := len(line) - len("|c")
	if len(head) == 0 || end <= len(head) || line[end] != '|' || line[end+1] != 'c' || string(line[:len(head)]) != head {
		return nil, 0, false
	}
	at := end - 1
	for scale := int64(1); at > len(head) && end-at <= maxDigits; at-- {
		c := line[at] - '0'
		if c > 9 {
			break
		}
		n += int64(c) * scale
		scale *= 10
	}
	key = line[len(head):at]
	if line[at] != ':' || at == len(head) || at == end-1 || n > MaxCount || bytes.IndexByte(key, ':') >= 0 {
		return nil, 0, false
	}
	return key, n, true
}

// maxDigits are surely less than overflow.
const maxDigits = 18

// parseValue reads what stands behind the first colon.
func parseValue(s []byte) (int64, error) {
	bar := bytes.IndexByte(s, '|')
	if bar <= 0 {
		return 0, ErrMalformed
	}
	values, s := s[:bar], s[bar+1:]
	kind, fields := s, []byte(nil)
	if bar = bytes.IndexByte(s, '|'); bar >= 0 {
		kind, fields = s[:bar], s[bar+1:]
	}
	switch {
	case len(kind) == 0:
		return 0, ErrMalformed
	case len(kind) != 1 || kind[0] != 'c':
		return 0, ErrNotCounter
	}
	if fields == nil {
		if n, ok := digits(values); ok && n <= MaxCount { // by far the most lines
			return n, nil
		}
	}
	return parseSampled(values, fields)
}

// digits reads up to maxDigits decimal digits.
func digits(s []byte) (int64, bool) {
	if len(s) == 0 || len(s) > maxDigits {
		return 0, false
	}
	var n int64
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

func parseSampled(values, fields []byte) (int64, error) {
	sum := 0.0
	for v := range bytes.SplitSeq(values, []byte{':'}) {
		f, err := parseFloat(v)
		if err != nil {
			return 0, err
		}
		sum += f
	}
	for f := range bytes.SplitSeq(fields, []byte{'|'}) {
		if len(f) == 0 || f[0] != '@' {
			continue
		}
		rate, err := parseFloat(f[1:])
		if err != nil || rate <= 0 || rate > 1 {
			return 0, ErrMalformed
		}
		sum /= rate
	}
	sum = math.Round(sum)
	switch {
	case sum < 0:
		return 0, ErrNegative
	case sum > MaxCount:
		return 0, ErrMalformed
	}
	return int64(sum), nil
}

func parseFloat(s []byte) (float64, error) {
	if len(s) == 0 || len(s) > 32 {
		return 0, ErrMalformed
	}
	for _, c := range s { // no hex, no inf, no underscores
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			return 0, ErrMalformed
		}
	}
	f, err := strconv.ParseFloat(string(s), 64)
	if err != nil || math.IsInf(f, 0) {
		return 0, ErrMalformed
	}
	return f, nil
}
