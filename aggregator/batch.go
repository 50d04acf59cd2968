package aggregator

import (
	"time"

	"github.com/hotparam/hotparam/internal/decode"
)

// batch holds the counts for a shard from one read of the source. The fields that the counts of
// a packet share are stored once, and their texts share one buffer.
type batch struct {
	reader   int       // number of the reader
	arrived  time.Time // arrival of the first packet
	now      time.Time // all packets that reached the reader before now are in the batches up to this one
	packets  []packet
	counts   []batchCount
	samples  []sample // samples among the counts
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
	saves    func(*Detector) // if not nil, the batch has no other content
}

// packet holds the fields that the counts of a packet share.
type packet struct {
	when     time.Time
	instance string
	inGroup  decode.InGroup
	skew     time.Duration
	start    int // index of its first count
}

type batchCount struct {
	hash uint64
	n    int64
	rule int32
	end  int32 // end of its text
}

// sample marks a count as an estimate from samples.
type sample struct {
	index int // index of the count
	seen  int64
}

type hiddenCount struct {
	when time.Time
	n    int64
}

// loss reports missing packets sent at when or before. If found is true, it replaces an earlier
// report of newer ones.
type loss struct {
	when  time.Time
	found bool
	turn  int64
}

// heldBound bounds the counts of any key of a rule that collectors hold back.
type heldBound struct {
	rule   int
	n      int64
	untold int64 // part of n
	turn   int64
}

// spared is a key that has no count in a gap except on its account.
type spared struct {
	gap, hash uint64
	rule      int
	known     bool
}

// healed is a count of a missing packet. It owns its text.
type healed struct {
	decode.Count
	until time.Time // latest possible time of the count
}

// moved is a count that was healed with a time between from and to.
type moved struct {
	decode.Count
	from, to time.Time
}

func (b *batch) reset() {
	b.missing, b.spared = b.missing[:0], b.spared[:0]
	clear(b.healed) // release their texts
	clear(b.moved)
	b.healed, b.moved = b.healed[:0], b.moved[:0]
	b.packets, b.counts, b.text = b.packets[:0], b.counts[:0], b.text[:0]
	b.samples, b.heldBack = b.samples[:0], b.heldBack[:0]
	b.origins, b.hidden, b.held, b.losses = b.origins[:0], b.hidden[:0], b.held[:0], b.losses[:0]
}

func (b *batch) isEmpty() bool {
	return len(b.counts) == 0 && len(b.origins) == 0 && len(b.heldBack) == 0 && len(b.hidden) == 0 && len(b.held) == 0 && len(b.losses) == 0 &&
		len(b.missing) == 0 && len(b.spared) == 0 && len(b.healed) == 0 && len(b.moved) == 0
}

// beginPacket starts the counts of a packet.
func (b *batch) beginPacket(c *decode.Count) {
	if n := len(b.packets); n > 0 && b.packets[n-1].start == len(b.counts) {
		b.packets = b.packets[:n-1] // the previous packet has no counts for this shard
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
