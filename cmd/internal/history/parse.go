package history

import (
	"encoding/binary"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// parser reads the inflated bytes of a chunk. After the first error it is bad, and returns zeros.
type parser struct {
	rest []byte
	bad  bool
}

// number reads a number of at most limit.
func (p *parser) number(limit uint64) uint64 {
	n, size := binary.Uvarint(p.rest)
	if size <= 0 || n > limit {
		p.bad, p.rest = true, nil
		return 0
	}
	p.rest = p.rest[size:]
	return n
}

func (p *parser) signed() int64 {
	n, size := binary.Varint(p.rest)
	if size <= 0 || n > maxAmount || n < -maxAmount {
		p.bad, p.rest = true, nil
		return 0
	}
	p.rest = p.rest[size:]
	return n
}

func (p *parser) bytes(n int) []byte {
	if n > len(p.rest) {
		p.bad, p.rest = true, nil
		return nil
	}
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b
}

func (p *parser) byte() byte {
	if b := p.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (p *parser) text() string { return string(p.bytes(int(p.number(maxTextRead)))) }

// maybe reads an amount that may be [published.Unknown].
func (p *parser) maybe() int64 { return int64(p.number(maxAmount+1)) - 1 }

func (p *parser) chunk() *chunk {
	c := &chunk{start: p.signed(), step: int64(p.number(1 << 20))}
	columns := int(p.number(maxColumns))
	if c.step == 0 || columns == 0 {
		p.bad = true
		return nil
	}
	c.known = make([]bool, columns)
	bits := p.bytes((columns + 7) / 8)
	for i := range c.known {
		c.known[i] = bits != nil && bits[i/8]&(1<<(i%8)) != 0
	}
	before := ""
	for n := p.number(maxRules); n > 0 && !p.bad; n-- {
		r := p.rule(columns)
		if r.rule <= before { // which also makes each id occur once
			p.bad = true
		}
		before = r.rule
		c.rules = append(c.rules, r)
	}
	for n := p.number(maxChunkMarks); n > 0 && !p.bad; n-- {
		m := Mark{At: c.start + p.signed()}
		kind := int(p.byte())
		if kind >= len(kinds) {
			p.bad = true
			return nil
		}
		m.Kind, m.Rule, m.Text, m.Words = kinds[kind], p.text(), p.text(), p.text()
		c.marks = append(c.marks, m)
	}
	return c
}

func (p *parser) rule(columns int) ruleSeries {
	r := ruleSeries{rule: p.text(), unit: rules.Unit(p.byte()), span: int64(p.number(1 << 20)), rest: make([]restCell, columns)}
	flags := p.bytes(columns)
	if flags == nil || r.unit > rules.Units || r.rule == "" {
		p.bad = true
		return r
	}
	seen := make([]int, 0, columns)
	for i, f := range flags {
		if f&columnSeen == 0 {
			continue
		}
		seen = append(seen, i)
		x := restCell{seen: true, low: int64(p.number(maxAmount)), high: published.Unknown, other: published.Unknown}
		if f&highUnknown == 0 {
			x.high = x.low + int64(p.number(maxAmount))
		}
		if f&otherUnknown == 0 {
			x.other = int64(p.number(maxAmount))
		}
		r.rest[i] = x
	}
	n := int(p.number(maxKeysRead))
	r.keys = make([]keySeries, 0, min(n, len(p.rest)/4))
	before := ""
	for ; n > 0 && !p.bad; n-- {
		shared := int(p.number(uint64(len(before))))
		k := keySeries{text: before[:shared] + p.text()}
		if len(k.text) > maxTextRead || k.text <= before {
			p.bad = true
		}
		k.cells = p.cells(columns, seen)
		r.keys = append(r.keys, k)
		before = k.text
	}
	return r
}

func (p *parser) cells(columns int, seen []int) []Cell {
	flags := p.byte()
	n := int(p.number(uint64(columns)))
	if flags&inAllSeen != 0 && n != len(seen) || n > len(p.rest) {
		p.bad = true
		return nil
	}
	cells := make([]Cell, n)
	next := 0
	for i := range cells {
		if flags&inAllSeen != 0 {
			cells[i].Column = seen[i]
			continue
		}
		cells[i].Column = next + int(p.number(maxColumns))
		if next = cells[i].Column + 1; next > columns {
			p.bad = true
			return nil
		}
	}
	low := int64(0)
	for i := range cells {
		low += p.signed()
		if low < 0 || low > maxAmount {
			p.bad = true
			return nil
		}
		cells[i].Low, cells[i].High, cells[i].Refused = low, low, published.Unknown
	}
	if flags&hasHighs != 0 {
		for i := range cells {
			cells[i].High = published.Plus(cells[i].Low, p.maybe())
		}
	}
	if flags&hasRefused != 0 {
		for i := range cells {
			cells[i].Refused = p.maybe()
		}
	}
	return cells
}
