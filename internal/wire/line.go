package wire

import (
	"bytes"
	"errors"
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
	// ErrEvent is an event or a service check of DogStatsD: text, not a number.
	ErrEvent = errors.New("wire: an event")
)

// AppendKey appends ".hot_param.{key}" to a prefix, the text encoded.
func AppendKey(dst []byte, e Encoding, text []byte) []byte {
	dst = append(dst, marker...)
	return e.Append(dst, text)
}

// Line is one count as it came: N and Frac of one, the latter in [0, 1). Its bytes
// are views into the packet.
type Line struct {
	Prefix []byte
	Key    []byte // encoded
	N      int64
	Frac   float64
	When   int64 // Unix seconds; zero if the line has no time
	// Sampled reports whether N and Frac are an estimate: a sample has a rate below 1.
	// Seen is what was seen, in whole counts.
	Sampled bool
	Seen    int64
}

// ParseLine reads one line without its newline, in any dialect of StatsD:
//
//	name:value[:value…]|type[|field…][:value[:value…]|type[|field…]…]
//
// The name ends at the first colon that is not in brackets; tags in it are cut
// out: [tags] anywhere, and from the first , ; or # to its end. Values of the type
// c are added up, divided by their rate, the field @rate; other types are passed
// over, as long as there is one c. A colon in a type or a rate begins the next
// sample. The field T is the line's time; all others, tags and container ids
// among them, are passed over. docs/DIALECTS.md has examples.
//
// It allocates if tags stand in the midst of the name; [ParseLineIn] does not.
func ParseLine(line []byte) (Line, error) {
	l, _, err := ParseLineIn(nil, line)
	return l, err
}

// ParseLineIn is [ParseLine]. A name that tags are cut out of is put together
// behind what buf holds, which is returned.
func ParseLineIn(buf, line []byte) (Line, []byte, error) {
	if isEvent(line) {
		return Line{}, buf, ErrEvent
	}
	name, samples, buf, ok := cutName(buf, line)
	if !ok {
		return Line{}, buf, ErrMalformed
	}
	at := bytes.Index(name, []byte(marker))
	if at < 0 {
		if bytes.IndexByte(samples, '|') < 0 {
			return Line{}, buf, ErrMalformed
		}
		return Line{}, buf, ErrForeign
	}
	l := Line{Prefix: name[:at], Key: name[at+len(marker):]}
	if len(l.Prefix) == 0 || len(l.Key) == 0 {
		return Line{}, buf, ErrMalformed
	}
	if err := l.read(samples); err != nil {
		return Line{}, buf, err
	}
	return l, buf, nil
}

// isEvent reports whether a line is one of DogStatsD's events, _e{5,4}:title|text, and service checks,
// _sc|name|0, from names: their text may hold anything, a key of ours too.
func isEvent(line []byte) bool {
	return len(line) > 3 && line[0] == '_' && (string(line[:3]) == "_e{" || string(line[:4]) == "_sc|")
}
