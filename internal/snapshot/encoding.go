package snapshot

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
)

// MaxSize bounds an encoded snapshot.
const MaxSize = 1 << 20

// MaxCosts bounds the costs in a snapshot.
const MaxCosts = MaxSize / 8

// maxSums is the size up to which the sums of senders by rule are encoded. The rest is for
// keys.
const maxSums = MaxSize / 4

// magic begins each snapshot. Its last byte is the version of the encoding.
const magic = "hpsnap\x00\x03"

// Append appends s to dst, without the keys that do not fit into MaxSize, and returns the
// number of those keys. The references of keys take at most half of MaxSize. A group without
// room is unknown to the next process.
func (s *Snapshot) Append(dst []byte) (_ []byte, dropped int) {
	begin := len(dst)
	c := &codec{data: append(dst, magic...)}
	s.code(c)
	references, room := s.fitReferences()
	for i := range s.Keys {
		before := len(c.data)
		c.data = append(c.data, 1)
		if c.key(&s.Keys[i], s); len(c.data)-begin > MaxSize-room {
			c.data = c.data[:before]
			dropped++
			for j := range references {
				references[j].leaveOut(&s.Keys[i])
			}
		}
	}
	c.data = append(c.data, 0)
	for i := range references {
		if start := len(c.data); start-begin < MaxSize {
			c.data = append(c.data, 1)
			if c.reference(&references[i], s); len(c.data)-begin > MaxSize-1 {
				c.data = c.data[:start]
			}
		}
	}
	return append(c.data, 0), dropped
}

// code codes all but the keys and the references.
func (s *Snapshot) code(c *codec) {
	begin := len(c.data)
	c.times(&s.Cut)
	c.flag(&s.Plain)
	list(c, &s.Rules, func(r *string) { c.string(r, math.MaxInt32) })
	list(c, &s.Senders, func(x *Sender) {
		if !c.reads && len(c.data)-begin >= maxSums {
			short := *x
			short.ByRule = Sums{}
			x = &short
		}
		c.sender(x, len(s.Rules))
	})
	costs := s.Costs
	if len(costs) > MaxCosts {
		costs = nil
	}
	if c.bytes(&costs, MaxCosts); c.reads && len(costs) > 0 {
		s.Costs = costs
	}
}

// fitReferences returns copies of the references, with the groups that fit, and the room that
// they take.
func (s *Snapshot) fitReferences() (fit []ReferenceValues, room int) {
	const ends = 2 // a byte after the last key, and after the last reference
	room = ends
	var c codec
	for _, r := range s.References {
		c.data = c.data[:0]
		if c.reference(&r, s); room+len(c.data) > MaxSize/2 {
			r.Groups = nil
			c.data = c.data[:0]
			c.reference(&r, s)
		}
		const more = 1 + 3*binary.MaxVarintLen64 // the byte before it, and a bound for the keys that do not fit
		room += len(c.data) + more
		fit = append(fit, r)
	}
	return fit, min(room, MaxSize/2)
}

// leaveOut includes a key, which is not in the snapshot, in the bounds of r.Others.
func (r *ReferenceValues) leaveOut(k *RuleKey) {
	if k.Rule != r.Rule || r.Others.Known > r.Newest {
		return
	}
	i := slices.IndexFunc(k.Views, func(v WindowCounts) bool { return v.Pane == r.Pane && v.Panes == r.Panes })
	if i < 0 {
		return // it is one of the others already
	}
	v := &k.Views[i]
	if v.Known > r.Others.Known {
		r.Others = Bounds{Known: r.Newest + 1}
		return
	}
	n := v.MaxLack()
	for _, c := range v.Counts {
		if c.Pane >= r.Others.Known {
			n += c.N
		}
	}
	r.Others.Lacks = []Lack{{r.Others.Known, max(n, r.Others.MaxLack())}}
}

// Errors of Parse.
var (
	ErrVersion   = errors.New("it is of another version, or no snapshot")
	ErrMalformed = errors.New("it is malformed")
)

// Parse reads the output of Append. The memory that it takes is bounded by the length of data.
func Parse(data []byte) (*Snapshot, error) {
	if len(data) < len(magic) || len(data) > MaxSize || string(data[:len(magic)]) != magic {
		return nil, ErrVersion
	}
	c, s := &codec{data: data[len(magic):], reads: true}, new(Snapshot)
	s.code(c)
	for c.more() {
		var k RuleKey
		c.key(&k, s)
		s.Keys = append(s.Keys, k)
	}
	for c.more() {
		var r ReferenceValues
		c.reference(&r, s)
		s.References = append(s.References, r)
	}
	if c.failed || len(c.data) > 0 {
		return nil, ErrMalformed
	}
	return s, nil
}

// more reads the byte before an element of a list, and reports whether there is one.
func (c *codec) more() bool {
	if c.require(len(c.data) > 0); c.failed {
		return false
	}
	b := c.data[0]
	c.data = c.data[1:]
	return b != 0
}
