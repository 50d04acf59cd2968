package aggregator

import (
	"time"

	"github.com/hotparam/hotparam/internal/decode"
)

// shardBatch holds the counts for a shard from one read of the source. The fields that the counts of
// a packet share are stored once, and their texts share one buffer.
type shardBatch struct {
	reader   int       // number of the reader
	arrived  time.Time // arrival of the first packet
	now      time.Time // all packets that reached the reader before now are in the batches up to this one
	packets  []packet
	counts   []batchCount
	samples  []sampledCount // samples among the counts
	text     []byte
	excluded []excludedKey
	before   []func(*shard)  // further reports, which are made before the counts
	after    []func(*shard)  // reports that are made after the counts
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

// sampledCount marks a count as an estimate from samples.
type sampledCount struct {
	index int // index of the count
	seen  int64
}

// excludedKey is a key that has no count in a gap except on its account. A loss excludes all
// keys of its sender, so they are not reports of their own.
type excludedKey struct {
	gap, hash uint64
	rule      int
	known     bool
}

func (b *shardBatch) reset() {
	clear(b.before) // release what they hold
	clear(b.after)
	b.packets, b.counts, b.text, b.samples = b.packets[:0], b.counts[:0], b.text[:0], b.samples[:0]
	b.excluded, b.before, b.after = b.excluded[:0], b.before[:0], b.after[:0]
}

func (b *shardBatch) isEmpty() bool {
	return len(b.counts)+len(b.excluded)+len(b.before)+len(b.after) == 0
}

// beginPacket starts the counts of a packet.
func (b *shardBatch) beginPacket(c *decode.Count) {
	if n := len(b.packets); n > 0 && b.packets[n-1].start == len(b.counts) {
		b.packets = b.packets[:n-1] // the previous packet has no counts for this shard
	}
	b.packets = append(b.packets, packet{c.When, c.Instance, c.InGroup, c.Skew, len(b.counts)})
}

func (b *shardBatch) add(c *decode.Count) {
	if c.Estimated {
		b.samples = append(b.samples, sampledCount{len(b.counts), c.Seen})
	}
	b.text = append(b.text, c.Text...)
	b.counts = append(b.counts, batchCount{hash: c.Hash, n: c.N, rule: int32(c.Rule), end: int32(len(b.text))})
}
