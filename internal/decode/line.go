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
		if c.Text, ok = d.decodeText(d.encoding, key); !ok {
			return false
		}
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

// decodeText decodes a text of a line, and appends it to those of the packet. It counts a text
// that it cannot decode. The result remains valid when d.text is reallocated.
func (d *Decoder) decodeText(e wire.Encoding, raw []byte) (text []byte, ok bool) {
	all, err := e.AppendDecoded(d.text, raw)
	if err != nil {
		d.stats.BadKey.Add(1)
		return nil, false
	}
	text, d.text = all[len(d.text):], all
	return text, true
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
func cutLine(packet []byte) (line, tail []byte) {
	line = packet
	if end := bytes.IndexByte(packet, '\n'); end >= 0 {
		line, tail = packet[:end], packet[end+1:]
	}
	if len(line) > 0 && line[len(line)-1] == '\r' {
		line = line[:len(line)-1]
	}
	return line, tail
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

// makeCanonical replaces the text of a count that another program wrote by the canonical text
// that instances use for the key.
func (d *Decoder) makeCanonical(c *Count) {
	start, changed := len(d.text), false
	d.text, changed = d.head.canonical.Append(d.text, c.Text)
	if !changed && d.encoding.Fits(c.Text) {
		return
	}
	if !changed {
		d.text = append(d.text, c.Text...) // the packet itself must not be modified
	}
	d.text = append(d.text[:start], d.encoding.Fit(d.text[start:])...)
	c.Text = d.text[start:]
	c.Hash = rules.Hash(c.Text)
	d.stats.Uncanonical.Add(1)
}

// fractions are the remainders of counts that were not whole: one line that is sampled at 0.3
// represents 3.33. The remainder is added to the next line of its place, so that counts add up
// to the truth within two for each place.
//
// Keys share places, so a key may get the remainder of another. With one sum in a place that
// would not even out: of two keys that alternate with 0.9 and 0.1 the second would get it all.
// With two sums, chosen at random, each key gets a whole one as often as it should.
type fractions struct {
	left [256][2]float64
	dice uint64
}

// carry adds part of a count, less than 1, of the key with this hash. It returns 1 if that
// completes a whole count, and 0 otherwise.
func (f *fractions) carry(hash uint64, part float64) int64 {
	f.dice = f.dice*6364136223846793005 + 1442695040888963407 // Knuth's MMIX
	left := &f.left[hash%uint64(len(f.left))][f.dice>>63]
	if *left += part; *left < 1 {
		return 0
	}
	*left--
	return 1
}
