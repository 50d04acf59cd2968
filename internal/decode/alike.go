package decode

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// alike is how lines begin that differ only in the last value of their keys and in their
// counts, as most neighbours do. A line that begins so and goes on with bytes that stand for
// themselves, a colon, digits and "|c" is read in one pass: what the other passes would find
// out is known from the line that it was learned from.
type alike struct {
	raw       []byte // up to the last value
	text      []byte // what raw's part of the key stands for, if that is not what it says
	rule      int
	key       int  // where the key begins in raw
	canonical bool // so is each key, not only those of instances
	missed    int  // lines that it was of no use for since it was learned
}

const (
	// learnAfter is how many lines it may be of no use for: lines of different rules and routes
	// alternate.
	learnAfter = 4
	// maxDigits are surely less than overflow.
	maxDigits = 18
)

// cutAlike reads the first line of a packet into c, and returns where the next one begins. It
// returns 0, and what is in c does not count, for a line that has to be read in other ways.
func (d *Decoder) cutAlike(packet []byte, c *Count, believe bool) (next int) {
	a := &d.alike
	at := len(a.raw)
	if at == 0 || len(packet) < at+8 || !believe && !a.canonical || string(packet[:at]) != string(a.raw) {
		return 0
	}
	for {
		if marks := base.ReservedBytes(binary.LittleEndian.Uint64(packet[at:])); marks != 0 {
			at += bits.TrailingZeros64(marks) / 8
			break
		}
		if at += 8; len(packet) < at+8 {
			return 0
		}
	}
	end := at
	if packet[at] != ':' || end-a.key > d.maxAlike {
		return 0
	}
	n, first := int64(0), at+1
	for at = first; at < len(packet) && at-first < maxDigits; at++ {
		digit := packet[at] - '0'
		if digit > 9 {
			break
		}
		n = n*10 + int64(digit)
	}
	if at == first || len(packet)-at < len("|c") || packet[at] != '|' || packet[at+1] != 'c' || n > wire.MaxCount {
		return 0
	}
	if at += len("|c"); at < len(packet) {
		if packet[at] != '\n' {
			return 0
		}
		at++
	}
	c.Rule, c.N, c.Text, c.Estimated = a.rule, n, packet[a.key:end], false
	if a.text != nil {
		start := len(d.text)
		d.text = append(append(d.text, a.text...), packet[len(a.raw):end]...)
		c.Text = d.text[start:]
	}
	c.Hash = rules.Hash(c.Text)
	return at
}

// learn makes the beginning of a line that cutAlike could not read that of those which it can,
// if the present one has been of no use for long. key is the line's, as it stands in it.
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
