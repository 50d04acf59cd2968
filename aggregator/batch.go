package aggregator

import (
	"time"

	"github.com/hotparam/hotparam/internal/decode"
)

// batch holds what one read of the source has for a shard. What the counts of a packet have
// in common is stored once, and their texts share one buffer.
type batch struct {
	reader   int       // the number of the reader
	arrived  time.Time // the first of it
	now      time.Time // the batches up to this one hold all that reached the reader before
	packets  []packet
	counts   []batchCount
	samples  []sample // of the counts
	text     []byte
	origins  []decode.OriginCount
	heldBack []decode.HeldBack
	hidden   []hiddenCount
	held     []heldBound
	losses   []loss
	missing  []decode.Gap
	spared   []spared
	healed   []healed
	moved    []moved
	saves    func(*Detector) // the batch has nothing but this
}

// packet holds what the counts of a packet have in common.
type packet struct {
	when     time.Time
	instance string
	inGroup  decode.InGroup
	skew     time.Duration
	start    int // its first count
}

type batchCount struct {
	hash uint64
	n    int64
	rule int32
	end  int32 // of its text
}

// sample marks a count that is an estimate, of which seen were counted.
type sample struct {
	at   int // which count
	seen int64
}

type hiddenCount struct {
	when time.Time
	n    int64
}

// loss reports missing packets of when or before. With found they are older than was reported
// before.
type loss struct {
	when  time.Time
	found bool
	turn  int64
}

// heldBound bounds what collectors hold back of any key of a rule.
type heldBound struct {
	rule   int
	n      int64
	untold int64 // part of it
	turn   int64
}

// spared is a key that has no count in a gap except on its account.
type spared struct {
	gap, hash uint64
	rule      int
	known     bool
}

// healed is a count of a packet that is missing; its text is its own.
type healed struct {
	decode.Count
	until time.Time // it can be of
}

// moved is a count that was healed as of some time between from and to.
type moved struct {
	decode.Count
	from, to time.Time
}

func (b *batch) reset() {
	b.missing, b.spared = b.missing[:0], b.spared[:0]
	clear(b.healed) // their texts
	clear(b.moved)
	b.healed, b.moved = b.healed[:0], b.moved[:0]
	b.packets, b.counts, b.text = b.packets[:0], b.counts[:0], b.text[:0]
	b.samples, b.heldBack = b.samples[:0], b.heldBack[:0]
	b.origins, b.hidden, b.held, b.losses = b.origins[:0], b.hidden[:0], b.held[:0], b.losses[:0]
}

func (b *batch) empty() bool {
	return len(b.counts) == 0 && len(b.origins) == 0 && len(b.heldBack) == 0 && len(b.hidden) == 0 && len(b.held) == 0 && len(b.losses) == 0 &&
		len(b.missing) == 0 && len(b.spared) == 0 && len(b.healed) == 0 && len(b.moved) == 0
}

// begin makes ready for the counts of a packet.
func (b *batch) begin(c *decode.Count) {
	if n := len(b.packets); n > 0 && b.packets[n-1].start == len(b.counts) {
		b.packets = b.packets[:n-1] // it had none here
	}
	b.packets = append(b.packets, packet{c.When, c.Instance, c.InGroup, c.Skew, len(b.counts)})
}

func (b *batch) add(c *decode.Count) {
	if c.Estimated {
		b.samples = append(b.samples, sample{len(b.counts), c.Seen})
	}
	b.text = append(b.text, c.Text...)
	b.counts = append(b.counts, batchCount{hash: c.Hash, n: c.N, rule: int32(c.Rule), end: int32(len(b.text))})
}
