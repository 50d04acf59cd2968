package history

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/hotparam/hotparam/internal/published"
)

// A chunk is encoded as the number of the format. The rest is deflated:
//
//	start, step, columns; a bit for each known column
//	number of rules, and of each: id, unit, span; a byte for each column: seen, and what is not known;
//	  of each seen column low, high-low, other; the number of keys, and of each
//	    the number of bytes shared with the previous key, and the other bytes
//	    flags; number of cells; the columns, unless they are all seen ones
//	    the differences of the low amounts; high-low and refused, unless all have none
//	number of marks, and of each: at, kind, rule, text, words
//
// Numbers are varints. An amount that may be unknown is one higher, and 0 if it is.
const format = 1

// Bounds of a chunk that is read.
const (
	maxInflated = 32 << 20
	maxColumns  = 60
	maxRules    = 4096
	maxKeysRead = 1 << 16
	maxTextRead = 16 << 10
	maxAmount   = 1 << 53 // which JSON keeps exactly
)

// kinds are the numbers of kinds of marks.
var kinds = []Kind{MarkRules, MarkDeploy, MarkControl, MarkFault, MarkHot, MarkCool}

// Flags of a key's cells.
const (
	hasHighs   = 1 << iota // some high amount is not the low one
	hasRefused             // some refused amount is known
	inAllSeen              // there is a cell for each column in which the rule was seen
)

// Flags of a column of a rule.
const (
	columnSeen = 1 << iota
	highUnknown
	otherUnknown
)

// encode returns the bytes of a chunk.
func (c *chunk) encode() []byte {
	raw := c.appendRaw(make([]byte, 0, 4096))
	var b bytes.Buffer
	b.Grow(len(raw)/3 + 64)
	b.WriteByte(format)
	w, _ := flate.NewWriter(&b, flate.DefaultCompression) // the level is valid
	_, _ = w.Write(raw)                                   // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}

func (c *chunk) appendRaw(b []byte) []byte {
	b = binary.AppendVarint(b, c.start)
	b = binary.AppendUvarint(b, uint64(c.step))
	b = binary.AppendUvarint(b, uint64(len(c.known)))
	for i := 0; i < len(c.known); i += 8 {
		bits := byte(0)
		for j := i; j < min(i+8, len(c.known)); j++ {
			if c.known[j] {
				bits |= 1 << (j - i)
			}
		}
		b = append(b, bits)
	}
	b = binary.AppendUvarint(b, uint64(len(c.rules)))
	for i := range c.rules {
		b = c.rules[i].append(b)
	}
	b = binary.AppendUvarint(b, uint64(len(c.marks)))
	for _, m := range c.marks {
		b = binary.AppendVarint(b, m.At-c.start)
		b = append(b, byte(max(0, slices.Index(kinds, m.Kind))))
		b = appendString(appendString(appendString(b, m.Rule), m.Text), m.Words)
	}
	return b
}

func (r *ruleSeries) append(b []byte) []byte {
	b = append(appendString(b, r.rule), byte(r.unit))
	b = binary.AppendUvarint(b, uint64(r.span))
	seen := make([]int, 0, len(r.rest))
	for i, x := range r.rest {
		flags := byte(0)
		if x.seen {
			flags |= columnSeen
			seen = append(seen, i)
		}
		if x.high == published.Unknown {
			flags |= highUnknown
		}
		if x.other == published.Unknown {
			flags |= otherUnknown
		}
		b = append(b, flags)
	}
	for _, i := range seen {
		x := &r.rest[i]
		b = binary.AppendUvarint(b, uint64(x.low))
		if x.high != published.Unknown {
			b = binary.AppendUvarint(b, uint64(max(0, x.high-x.low)))
		}
		if x.other != published.Unknown {
			b = binary.AppendUvarint(b, uint64(x.other))
		}
	}
	b = binary.AppendUvarint(b, uint64(len(r.keys)))
	before := ""
	for i := range r.keys {
		k := &r.keys[i]
		shared := 0
		for shared < min(len(before), len(k.text)) && before[shared] == k.text[shared] {
			shared++
		}
		b = appendString(binary.AppendUvarint(b, uint64(shared)), k.text[shared:])
		b = k.appendCells(b, seen)
		before = k.text
	}
	return b
}

func (k *keySeries) appendCells(b []byte, seen []int) []byte {
	flags := byte(0)
	if len(k.cells) == len(seen) {
		flags |= inAllSeen
	}
	for i := range k.cells {
		x := &k.cells[i]
		if x.High != x.Low {
			flags |= hasHighs
		}
		if x.Refused != published.Unknown {
			flags |= hasRefused
		}
		if flags&inAllSeen != 0 && x.Column != seen[i] {
			flags &^= inAllSeen
		}
	}
	b = binary.AppendUvarint(append(b, flags), uint64(len(k.cells)))
	if flags&inAllSeen == 0 {
		next := 0
		for i := range k.cells {
			b = binary.AppendUvarint(b, uint64(k.cells[i].Column-next))
			next = k.cells[i].Column + 1
		}
	}
	low := int64(0)
	for i := range k.cells {
		b = binary.AppendVarint(b, k.cells[i].Low-low)
		low = k.cells[i].Low
	}
	if flags&hasHighs != 0 {
		for i := range k.cells {
			b = appendMaybe(b, minus(k.cells[i].High, k.cells[i].Low))
		}
	}
	if flags&hasRefused != 0 {
		for i := range k.cells {
			b = appendMaybe(b, k.cells[i].Refused)
		}
	}
	return b
}

func appendMaybe(b []byte, n int64) []byte { return binary.AppendUvarint(b, uint64(n+1)) }

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

var errChunk = errors.New("cannot be read")

// parseChunk reads the bytes of a chunk. They may be anything.
func parseChunk(data []byte) (*chunk, error) {
	if len(data) == 0 || data[0] != format {
		return nil, fmt.Errorf("history chunk: %w: not of format %d", errChunk, format)
	}
	raw, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data[1:])), maxInflated+1))
	if err != nil {
		return nil, fmt.Errorf("history chunk: %w", err)
	}
	p := parser{rest: raw, bad: len(raw) > maxInflated}
	c := p.chunk()
	if p.bad || len(p.rest) > 0 {
		return nil, fmt.Errorf("history chunk: %w", errChunk)
	}
	return c, nil
}
