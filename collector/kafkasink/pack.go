package kafkasink

import (
	"iter"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/internal/former"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// packer packs the lines of one flush into records. Only the goroutine that sends uses it.
type packer struct {
	rules  map[string]*packRule // by id, including removed rules
	former former.List
	head   wire.RecordHead
	mac    *wire.MAC // nil if records are not signed

	now        time.Time
	flush      collector.Flush  // the flush that the records state
	partitions []partitionState // by partition
	out        []*record        // complete records, in order
	// unsent and aged are sums of flushes that could not be sent. The next flush states
	// them.
	unsent, aged int64

	line    []byte
	headers []wire.Header
}

// partitionState is the packer's state for one partition.
type partitionState struct {
	seq       uint64
	open      *record   // the record that lines are added to
	held      int64     // the flush's Held as last stated
	last      time.Time // time of the last record that stated a flush
	hasStated bool      // whether a record has stated this flush
	sums      wire.Sums // sums of all records so far
	lastStart int64     // the start of the last record's flush
}

type packRule struct {
	prefix string
	head   string // the beginning of a line, before the key
	home   string // names the partition of all keys; empty if each key has its own
}

func newPacker(c *Config) packer {
	p := packer{rules: make(map[string]*packRule)}
	p.head.Namespace = []byte(c.Rules.Namespace)
	p.head.Instance, p.head.Incarnation = []byte(c.Instance), collector.NewIncarnation()
	if c.Key != nil {
		p.mac = wire.NewMAC(c.Key)
	}
	p.setRules(c.Rules)
	return p
}

// beginFlush begins to pack a flush for n partitions.
func (p *packer) beginFlush(f collector.Flush, now time.Time, n int) {
	p.flush, p.now = f, now
	p.head.Partitions, p.head.Held, p.head.Sent = n, f.Held, f.SendTime(p.mac != nil)
	for len(p.partitions) < n {
		p.partitions = append(p.partitions, partitionState{sums: wire.Sums{Stated: true}})
	}
	for i := range p.partitions {
		p.partitions[i].hasStated = false
	}
	p.out = p.out[:0]
}

// recordMissed records a flush that could not be sent. The next flush states its counts
// as unsent.
func (p *packer) recordMissed(f collector.Flush, sum int64) {
	p.unsent += f.Unsent + sum
	p.aged += f.Aged
}

// addMissed adds to a flush the sums of the missed flushes.
func (p *packer) addMissed(f *collector.Flush) {
	f.Unsent += p.unsent
	f.Aged += p.aged
	p.unsent, p.aged = 0, 0
}

// lastHeld returns the last flush's Held.
func (p *packer) lastHeld() int64 { return max(1, p.head.Held) }

// lineOutcome is the result of adding a line.
type lineOutcome int

const (
	lineTaken lineOutcome = iota
	lineTooLong
	lineUnknown // the sink has no such rule
)

func (p *packer) addCount(c *collector.Count) lineOutcome {
	rule, ok := p.rules[string(c.Rule)]
	if !ok {
		return lineUnknown
	}
	p.line = wire.Plain.Append(append(p.line[:0], rule.head...), c.Text)
	partition := p.partitionOf(rule, p.line[len(rule.head):])
	p.line = wire.AppendCount(p.line, c.N, c.Account)
	start := c.Start
	if start.IsZero() {
		start = p.flush.Start
	}
	booked := int64(0)
	if c.Account.Number != 0 {
		booked = c.N
	}
	v := p.addLine(partition, start.UnixNano(), c.N, booked)
	if r := p.partitions[partition].open; v == lineTaken && booked > 0 && !c.Start.IsZero() {
		r.parts++
	}
	return v
}

// addHeldBack adds a group's held-back counts. All keys of a group have one partition.
func (p *packer) addHeldBack(g *collector.HeldBack) {
	rule, ok := p.rules[g.Rule]
	if !ok {
		return
	}
	partition := p.partitionOf(rule, nil)
	p.line = wire.AppendHeldBack(p.line[:0], wire.Plain, rule.prefix, g.Group, g.N)
	if p.addLine(partition, p.flush.Start.UnixNano(), 0, 0) == lineTaken {
		p.partitions[partition].open.heldBack += g.N
	}
}

func (p *packer) addOrigin(o *collector.KeyOrigin) {
	rule, ok := p.rules[string(o.Rule)]
	if !ok {
		return // Send reports the unknown rule
	}
	partition := p.partitionOf(rule, wire.Plain.Append(p.line[:0], o.Text))
	p.line = wire.AppendOrigin(p.line[:0], wire.Plain, rule.prefix, o.Text, wire.OriginLine{Kind: o.Kind, Name: o.Name, N: o.N})
	p.addLine(partition, p.flush.Start.UnixNano(), 0, 0)
}

// partitionOf returns the partition of an encoded key.
func (p *packer) partitionOf(rule *packRule, key []byte) int32 {
	if rule.home != "" {
		return wire.Partition([]byte(rule.home), p.head.Partitions)
	}
	return wire.Partition(key, p.head.Partitions)
}

// addLine adds the line to its partition's record, or to a new one if the start differs or the
// record is full.
func (p *packer) addLine(partition int32, start, sum, booked int64) lineOutcome {
	if len(p.line) > wire.MaxRecord {
		return lineTooLong
	}
	h := &p.partitions[partition]
	if r := h.open; r != nil && (r.start != start || len(r.value)+1+len(p.line) > wire.MaxRecord) {
		p.completeRecord(partition)
	}
	r := h.open
	if r == nil {
		r = records.Get().(*record)
		r.start, h.open = start, r
	} else {
		r.value = append(r.value, '\n')
	}
	r.value = append(r.value, p.line...)
	r.sum += sum
	r.booked += booked
	r.lines++
	return lineTaken
}

// completeRecord completes the partition's record.
func (p *packer) completeRecord(partition int32) {
	h := &p.partitions[partition]
	r := h.open
	h.open = nil
	r.partition, r.born = partition, p.now
	p.out = append(p.out, r)
}

// addBeats adds a record without lines for each partition that has no other record but has to
// learn the flush's statements, or that the instance is alive.
func (p *packer) addBeats(all bool) {
	start := p.flush.Start.UnixNano()
	for i := range p.head.Partitions {
		h := &p.partitions[i]
		if r := h.open; r != nil {
			if r.start == start {
				continue
			}
			p.completeRecord(int32(i)) // a record with an earlier start does not state the flush
		}
		due := p.now.Add(base.FlushInterval).Sub(h.last) > collector.BeatEvery // the next flush would be late
		if all || due || p.flush.Unsent > 0 || p.flush.Held != h.held || p.flush.Aged > 0 && i == 0 {
			h.open = &record{start: start} // not one whose buffer was made for long values
		}
	}
}

// sealed completes the records of the flush. It returns an iterator that numbers each record,
// writes its headers and passes on its ownership.
func (p *packer) sealed(topic string) iter.Seq[*record] {
	for i := range p.partitions {
		if p.partitions[i].open != nil {
			p.completeRecord(int32(i))
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

// seal numbers a record and writes its headers. In each partition, one of the records with the
// flush's start states the flush. Aged is stated in a single partition, because receivers add
// it up.
func (p *packer) seal(r *record, topic string) {
	h := &p.partitions[r.partition]
	h.seq++
	h.held = p.flush.Held
	p.head.Seq, p.head.Start = h.seq, r.start
	p.head.Unsent, p.head.Aged = 0, 0
	if r.start == p.flush.Start.UnixNano() {
		h.last = p.now
		p.head.Aged, p.flush.Aged = p.flush.Aged, 0
		if !h.hasStated {
			h.hasStated, p.head.Unsent = true, p.flush.Unsent
		}
	}
	p.head.Sums = h.sums
	p.head.Sums.Opened, p.head.Sums.Shed = p.flush.Opened, p.flush.Shed
	flush := p.flush.Start.UnixNano()
	if p.head.Sums.Age = flush - r.start; h.seq > 1 {
		p.head.Sums.Since = flush - h.lastStart
	}
	h.lastStart = flush
	h.sums.Booked += uint64(r.booked)
	h.sums.Loose += uint64(r.sum - r.booked)
	h.sums.Parts += uint64(r.parts)
	h.sums.HeldBack += uint64(r.heldBack)
	p.headers = wire.AppendRecordHead(p.headers[:0], &p.head)
	if p.mac != nil {
		p.headers = p.mac.AppendRecordMAC(p.headers, r.partition, r.value)
	}
	r.seq = h.seq
	for i := range p.headers {
		r.headers = append(r.headers, kgo.RecordHeader(p.headers[i]))
	}
	r.address(topic)
}

// SetRules implements [collector.Sink]. Counts of removed rules are sent as before:
// an aggregator that has them still, or again, needs them, and others ignore the lines.
func (s *Sink) SetRules(rules *rules.Rules) {
	if rules != nil {
		s.pack.setRules(rules)
	}
}

func (p *packer) setRules(rules *rules.Rules) {
	p.head.Groups = wire.GroupsMark(rules)
	for i := range rules.Rules {
		rule := &rules.Rules[i]
		prefix := rule.CountPrefix(rules.Namespace)
		head := string(wire.AppendKey([]byte(prefix), wire.Plain, nil))
		p.rules[rule.ID] = &packRule{prefix: prefix, head: head}
		if rule.Whole() {
			p.rules[rule.ID].home = rule.Home(rules.Namespace)
		}
	}
	former.Update(&p.former, p.rules, rules)
}
