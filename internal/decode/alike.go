package decode

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// alike is the cached beginning of a line. Most neighbouring lines differ only in the last
// value of their keys and in their counts. A line that has this beginning, followed by
// unescaped bytes, a colon, digits and "|c", is read in one pass. The line that alike was
// learned from has already answered everything else that the general path would check.
type alike struct {
	raw       []byte // bytes of the line up to the last value
	text      []byte // decoded key part of raw, if it differs from those bytes
	rule      int
	key       int  // offset of the key in raw
	canonical bool // whether every key with this beginning is canonical, whoever sends it
	missed    int  // number of lines without a match since it was learned
}

const (
	// learnAfter is the number of lines without a match after which another beginning is
	// learned. It is above 1, since lines of different rules and routes alternate.
	learnAfter = 4
	// maxDigits is a number of digits that cannot overflow an int64.
	maxDigits = 18
)

// cutAlike reads the first line of a packet into c, if the line has the cached beginning, and
// returns the offset of the next line. It returns 0 for a line that the general path has to
// read. Then the content of c is undefined.
func (d *Decoder) cutAlike(packet []byte, c *Count, believe bool) (next int) {
	a := &d.alike
	pos := len(a.raw)
	if pos == 0 || len(packet) < pos+8 || !believe && !a.canonical || string(packet[:pos]) != string(a.raw) {
		return 0
	}
	for {
		if marks := base.ReservedBytes(binary.LittleEndian.Uint64(packet[pos:])); marks != 0 {
			pos += bits.TrailingZeros64(marks) / 8
			break
		}
		if pos += 8; len(packet) < pos+8 {
			return 0
		}
	}
	end := pos
	if packet[pos] != ':' || end-a.key > d.maxAlike {
		return 0
	}
	n, first := int64(0), pos+1
	for pos = first; pos < len(packet) && pos-first < maxDigits; pos++ {
		digit := packet[pos] - '0'
		if digit > 9 {
			break
		}
		n = n*10 + int64(digit)
	}
	if pos == first || len(packet)-pos < len("|c") || packet[pos] != '|' || packet[pos+1] != 'c' || n > wire.MaxCount {
		return 0
	}
	if pos += len("|c"); pos < len(packet) {
		if packet[pos] != '\n' {
			return 0
		}
		pos++
	}
	c.Rule, c.N, c.Text, c.Estimated = a.rule, n, packet[a.key:end], false
	if a.text != nil {
		start := len(d.text)
		d.text = append(append(d.text, a.text...), packet[len(a.raw):end]...)
		c.Text = d.text[start:]
	}
	c.Hash = rules.Hash(c.Text)
	return pos
}

// learn counts a line that cutAlike could not read. After learnAfter of them it replaces the
// cached beginning by that of the current line. key is the key as encoded in that line.
func (d *Decoder) learn(key []byte, believe bool) {
	a := &d.alike
	if a.missed++; a.missed < learnAfter && len(a.raw) > 0 || d.encoding != wire.Plain {
		return
	}
	var head, text []byte
	if believe {
		head = key[:bytes.LastIndexByte(key, '=')+1]
		if d.encoding.Escapes(head) {
			var err error
			if text, err = d.encoding.AppendDecoded(nil, head); err != nil {
				return
			}
		}
	} else if head = d.head.canonical.Head(); !bytes.HasPrefix(key, head) || d.encoding.Escapes(head) {
		return
	}
	if len(head) == 0 {
		return
	}
	*a = alike{
		raw: append(append(a.raw[:0], d.head.bytes...), head...), text: text,
		rule: d.head.rule, key: len(d.head.bytes), canonical: !believe,
	}
}
