package kafkasink

import (
	"iter"
	"strconv"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/wire"
)

// packer puts the lines of one flush into records. It belongs to the goroutine
// that sends.
type packer struct {
	encoding wire.Encoding
	rules    map[string]*packRule // by id
	head     wire.RecordHead
	mac      *wire.MAC // nil: records are not signed

	now   time.Time
	told  collector.Flush // what is to be told of the flush
	homes []home          // by partition
	out   []*record       // complete, in order
	// Of flushes that could not be sent at all.
	unsent, aged int64

	line    []byte
	headers []wire.Header
}

// home is a partition's place in the packer.
type home struct {
	seq  uint64
	open *record // that lines are added to
	held int64   // as last told
	last time.Time
	told bool // of this flush
	sums wire.Sums
	// before is the start of the flush of the record before.
	before int64
}

type packRule struct {
	prefix string
	head   string // of a line, before the key
	whole  bool   // all keys go to one partition
}

func newPacker(c *Config) packer {
	p := packer{encoding: c.Encoding, rules: make(map[string]*packRule)}
	p.head.Namespace = []byte(c.Rules.Namespace)
	p.head.Instance, p.head.Incarnation = []byte(c.Instance), collector.NewIncarnation()
	if c.Encoding != wire.Strict {
		p.head.Groups = wire.GroupsMark(c.Rules)
	}
	if c.Key != nil {
		p.mac = wire.NewMAC(c.Key)
	}
	for i := range c.Rules.Rules {
		rule := &c.Rules.Rules[i]
		prefix := rule.CountPrefix(c.Rules.Namespace)
		head := string(wire.AppendKey([]byte(prefix), c.Encoding, nil))
		p.rules[rule.ID] = &packRule{prefix: prefix, head: head, whole: rule.Whole()}
	}
	return p
}

// begin begins a flush to n partitions.
func (p *packer) begin(f collector.Flush, now time.Time, n int) {
	p.told, p.now = f, now
	p.head.Partitions, p.head.Held, p.head.Sent = n, f.Held, f.SendTime(p.mac != nil)
	for len(p.homes) < n {
		p.homes = append(p.homes, home{sums: wire.Sums{Told: true}})
	}
	for i := range p.homes {
		p.homes[i].told = false
	}
	p.out = p.out[:0]
}

// missed is a flush that nobody gets: its counts are unsent, so that the next tells
// of them.
func (p *packer) missed(f collector.Flush, mass int64) {
	p.unsent += f.Unsent + mass
	p.aged += f.Aged
}

// owed adds to a flush what those that nobody got had to tell.
func (p *packer) owed(f *collector.Flush) {
	f.Unsent += p.unsent
	f.Aged += p.aged
	p.unsent, p.aged = 0, 0
}

// heldBefore is h as of the last flush.
func (p *packer) heldBefore() int64 { return max(1, p.head.Held) }

// verdict is what becomes of a line.
type verdict int

const (
	lineTaken verdict = iota
	lineTooLong
	lineUnknown // no such rule
)

func (p *packer) count(c *collector.Count) verdict {
	rule, ok := p.rules[string(c.Rule)]
	if !ok {
		return lineUnknown
	}
	p.line = p.encoding.Append(append(p.line[:0], rule.head...), c.Text)
	at := p.home(rule, p.line[len(rule.head):])
	p.line = strconv.AppendInt(append(p.line, ':'), c.N, 10)
	p.line = append(p.line, "|c"...)
	if c.Account.Number != 0 {
		p.line = wire.AppendAccount(p.line, c.Account)
	}
	start := c.Start
	if start.IsZero() {
		start = p.told.Start
	}
	booked := int64(0)
	if c.Account.Number != 0 {
		booked = c.N
	}
	v := p.add(at, start.UnixNano(), c.N, booked)
	if r := p.homes[at].open; v == lineTaken && booked > 0 && !c.Start.IsZero() {
		r.parts++
	}
	return v
}

// heldBack adds what is held back of a group, whose keys are all of one partition.
func (p *packer) heldBack(g *collector.HeldBack) {
	rule, ok := p.rules[g.Rule]
	if !ok {
		return
	}
	at := p.home(rule, nil)
	p.line = wire.AppendHeldBack(p.line[:0], p.encoding, rule.prefix, g.Group, g.N)
	if p.add(at, p.told.Start.UnixNano(), 0, 0) == lineTaken {
		p.homes[at].open.heldBack += g.N
	}
}

func (p *packer) origin(o *collector.Origin) {
	rule, ok := p.rules[string(o.Rule)]
	if !ok {
		return // its counts tell of that
	}
	at := p.home(rule, p.encoding.Append(p.line[:0], o.Text))
	p.line = wire.AppendOrigin(p.line[:0], p.encoding, rule.prefix, o.Text, wire.Origin{Kind: o.Kind, Name: o.Name, N: o.N})
	p.add(at, p.told.Start.UnixNano(), 0, 0)
}

// home is the partition of an encoded key.
func (p *packer) home(rule *packRule, key []byte) int32 {
	if rule.whole {
		return wire.Partition([]byte(rule.prefix), p.head.Partitions)
	}
	return wire.Partition(key, p.head.Partitions)
}

// add adds the line to its partition's record. One of another start, or that does
// not fit any more, needs another record.
func (p *packer) add(at int32, start, mass, booked int64) verdict {
	if len(p.line) > wire.MaxRecord {
		return lineTooLong
	}
	h := &p.homes[at]
	if r := h.open; r != nil && (r.start != start || len(r.value)+1+len(p.line) > wire.MaxRecord) {
		p.close(at)
	}
	r := h.open
	if r == nil {
		r = newRecord(len(p.line))
		r.start = start
	} else {
		r = r.grown(len(r.value) + 1 + len(p.line))
		r.value = append(r.value, '\n')
	}
	r.value = append(r.value, p.line...)
	r.mass += mass
	r.booked += booked
	r.lines++
	h.open = r
	return lineTaken
}

// close completes the partition's record.
func (p *packer) close(at int32) {
	h := &p.homes[at]
	r := h.open
	h.open = nil
	r.partition, r.born = at, p.now
	p.out = append(p.out, r)
}

// beat adds a record without lines for each partition that needs to know something
// and gets no other: that the instance lives, what may have been dropped of any one
// key, what is held back of each.
func (p *packer) beat(all bool) {
	start := p.told.Start.UnixNano()
	for i := range p.head.Partitions {
		h := &p.homes[i]
		if r := h.open; r != nil {
			if r.start == start {
				continue
			}
			p.close(int32(i)) // of before: what is to be told is of this flush
		}
		due := p.now.Add(hotparam.FlushEvery).Sub(h.last) > collector.BeatEvery // the next flush would be late
		if all || due || p.told.Unsent > 0 || p.told.Held != h.held || p.told.Aged > 0 && i == 0 {
			h.open = newRecord(0)
			h.open.start = start
		}
	}
}

// sealed are the records of the flush, ready to go. Whoever takes one has it.
func (p *packer) sealed(topic string) iter.Seq[*record] {
	for i := range p.homes {
		if p.homes[i].open != nil {
			p.close(int32(i))
		}
	}
	return func(yield func(*record) bool) {
		for _, r := range p.out {
			p.seal(r, topic)
			if !yield(r) {
				return
			}
		}
	}
}

// seal numbers a record and writes its headers. What is told of the flush is told
// to each partition once, in a record that has its start; Aged, which is a sum, to
// one.
func (p *packer) seal(r *record, topic string) {
	h := &p.homes[r.partition]
	h.seq++
	h.held = p.told.Held
	p.head.Seq, p.head.Start = h.seq, r.start
	p.head.Unsent, p.head.Aged = 0, 0
	if r.start == p.told.Start.UnixNano() {
		h.last = p.now
		p.head.Aged, p.told.Aged = p.told.Aged, 0
		if !h.told {
			h.told, p.head.Unsent = true, p.told.Unsent
		}
	}
	p.head.Sums = h.sums
	p.head.Sums.Opened, p.head.Sums.Shed = p.told.Opened, p.told.Shed
	flush := p.told.Start.UnixNano()
	if p.head.Sums.Age = flush - r.start; h.seq > 1 {
		p.head.Sums.Since = flush - h.before
	}
	h.before = flush
	h.sums.Booked += uint64(r.booked)
	h.sums.Loose += uint64(r.mass - r.booked)
	h.sums.Parts += uint64(r.parts)
	h.sums.HeldBack += uint64(r.heldBack)
	p.headers = wire.AppendRecordHead(p.headers[:0], &p.head)
	if p.mac != nil {
		p.headers = p.mac.AppendRecordMAC(p.headers, r.partition, r.value)
	}
	r.seal(topic, h.seq, p.headers)
}
