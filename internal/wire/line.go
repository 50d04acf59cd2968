package wire

import (
	"bytes"
	"errors"
	"strconv"
)

// MaxPacket is the maximum size of a packet, which fits an Ethernet frame with room for tunnels.
const MaxPacket = 1432

// MaxCount is the highest count of one line; a line with more is malformed. So sums of counts in
// a window stay far from overflowing.
const MaxCount = 1 << 40

// marker separates a line's prefix from its key.
const marker = ".hot_param."

// Reasons why a line is not a count. Readers also count lines by them.
var (
	ErrMalformed  = errors.New("wire: malformed line")
	ErrForeign    = errors.New("wire: not a hot_param line")
	ErrNotCounter = errors.New("wire: not a counter")
	ErrNegative   = errors.New("wire: negative count")
	// ErrEvent is an event or a service check of DogStatsD: text, not a number.
	ErrEvent = errors.New("wire: an event")
)

// AppendKey appends ".hot_param.{key}" to a prefix, the text encoded.
func AppendKey(dst []byte, e Encoding, text []byte) []byte {
	dst = append(dst, marker...)
	return e.Append(dst, text)
}

// AppendCount appends the rest of a line after its key: a count and, unless its number is 0, the
// key's account.
func AppendCount(dst []byte, n int64, a Account) []byte {
	dst = append(strconv.AppendInt(append(dst, ':'), n, 10), "|c"...)
	if a.Number != 0 {
		dst = AppendAccount(dst, a)
	}
	return dst
}

// Line is one count as received: N and Frac of one, the latter in [0, 1). Its bytes
// are views into the packet.
type Line struct {
	Prefix []byte
	Key    []byte // encoded
	N      int64
	Frac   float64
	When   int64 // Unix seconds; zero if the line has no time
	// Sampled reports whether N and Frac are an estimate: a sample had a rate below 1. Seen is
	// the sum of the samples themselves, in whole counts.
	Sampled bool
	Seen    int64
}

// ParseLine reads one line without its newline, in any dialect of StatsD:
//
//	name:value[:value…]|type[|field…][:value[:value…]|type[|field…]…]
//
// The name ends at the first colon outside brackets. Tags in the name are cut out: [tags]
// anywhere, and from the first , ; or # to its end. Values of the type c are divided by their
// rate, the field @rate, and added up. Other types are skipped, as long as there is one c. A
// colon in a type or a rate begins the next sample. The field T is the line's time. All other
// fields, such as tags and container ids, are skipped. docs/DIALECTS.md has examples.
//
// ParseLine allocates if tags are in the middle of the name; [ParseLineIn] does not.
func ParseLine(line []byte) (Line, error) {
	l, _, err := ParseLineIn(nil, line)
	return l, err
}

// ParseLineIn is [ParseLine], but a name that tags are cut out of is assembled after the content
// of buf. It returns the buffer.
func ParseLineIn(buf, line []byte) (Line, []byte, error) {
	if isEvent(line) {
		return Line{}, buf, ErrEvent
	}
	name, samples, buf, ok := cutName(buf, line)
	if !ok {
		return Line{}, buf, ErrMalformed
	}
	i := bytes.Index(name, []byte(marker))
	if i < 0 {
		if bytes.IndexByte(samples, '|') < 0 {
			return Line{}, buf, ErrMalformed
		}
		return Line{}, buf, ErrForeign
	}
	l := Line{Prefix: name[:i], Key: name[i+len(marker):]}
	if len(l.Prefix) == 0 || len(l.Key) == 0 {
		return Line{}, buf, ErrMalformed
	}
	if err := l.read(samples); err != nil {
		return Line{}, buf, err
	}
	return l, buf, nil
}

// isEvent reports whether a line is an event, _e{5,4}:title|text, or a service check,
// _sc|name|0, of DogStatsD. Their text may contain anything, even a key of ours.
func isEvent(line []byte) bool {
	return len(line) > 3 && line[0] == '_' && (string(line[:3]) == "_e{" || string(line[:4]) == "_sc|")
}
