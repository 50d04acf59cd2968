package decode

import (
	"bytes"
	"errors"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// decodeLine decodes a line into c, whose text is valid until the next packet. It returns false
// for a line that is no count. believe reports whether the key is known to be canonical.
func (d *Decoder) decodeLine(line []byte, c *Count, believe bool, h Handler) bool {
	var part float64
	c.Estimated = false
	key, n, ok := wire.CutCount(line, d.head.bytes)
	if !ok {
		var l wire.Line
		if l, ok = d.parseLine(line, c.When, h); !ok {
			return false
		}
		key, n, part = l.Key, l.N, l.Frac
		c.Estimated, c.Seen = l.Sampled, l.Seen
		if when := time.Unix(l.When, 0); l.When > 0 && when.Before(c.When) {
			c.When, d.timed = when, true
		}
	}
	c.Rule, c.N, c.Text = d.head.rule, n, key
	if d.encoding.Escapes(key) {
		start := len(d.text)
		var err error
		if d.text, err = d.encoding.AppendDecoded(d.text, key); err != nil {
			d.stats.BadKey.Add(1)
			return false
		}
		c.Text = d.text[start:] // remains valid when d.text is reallocated
	}
	c.Hash = rules.Hash(c.Text)
	if !believe {
		d.makeCanonical(c)
	}
	d.learn(key, believe)
	if part > 0 {
		c.N += d.fractions.carry(c.Hash, part)
	}
	if c.Estimated {
		c.Seen = min(c.Seen, c.N)
		d.stats.Samples.Add(1)
	}
	return true
}

// parseLine parses a line of any dialect, in a packet of the time when. It sets d.head to the
// line's head.
func (d *Decoder) parseLine(line []byte, when time.Time, h Handler) (l wire.Line, ok bool) {
	var err error
	if l, d.text, err = wire.ParseLineIn(d.text, line); err != nil {
		if !errors.Is(err, wire.ErrForeign) || !d.readOrigin(line, when, h) && !d.readHeldBack(line, when) {
			d.reject(err)
		}
		return l, false
	}
	if d.head, ok = d.rules[string(l.Prefix)]; !ok {
		d.stats.NoRule.Add(1)
	}
	return l, ok
}

func (d *Decoder) reject(err error) {
	switch {
	case errors.Is(err, wire.ErrForeign):
		d.stats.Foreign.Add(1)
	case errors.Is(err, wire.ErrNotCounter):
		d.stats.NotCounter.Add(1)
	case errors.Is(err, wire.ErrNegative):
		d.stats.Negative.Add(1)
	case errors.Is(err, wire.ErrEvent):
		d.stats.Events.Add(1)
	default:
		d.stats.Malformed.Add(1)
	}
}

// cutLine cuts the first line off a packet.
func cutLine(packet []byte) (line, rest []byte) {
	line = packet
	if end := bytes.IndexByte(packet, '\n'); end >= 0 {
		line, rest = packet[:end], packet[end+1:]
	}
	if len(line) > 0 && line[len(line)-1] == '\r' {
		line = line[:len(line)-1]
	}
	return line, rest
}

// metaOffset returns the offset of the first meta line.
func metaOffset(lines []byte) int {
	for remaining := lines; len(remaining) > 0; {
		offset := len(lines) - len(remaining)
		var line []byte
		if line, remaining = cutLine(remaining); wire.IsMeta(line) {
			return offset
		}
	}
	return len(lines)
}
