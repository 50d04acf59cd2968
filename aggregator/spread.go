package aggregator

import (
	"bytes"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam"
)

// spread is the [Handler] that gives each shard its part of what one reader reads.
type spread struct {
	reader  int
	turns   *atomic.Int64 // the order in which all readers tell what is missing
	shards  []*shard
	homes   []int // by rule: the one shard that has all its keys, -1: each key its own
	batches []*batch
	told    time.Time // when all shards were last told the time
}

// tick is how often at least a shard is told what time it is.
const tick = 50 * time.Millisecond

// newSpreads makes a spread for each reader of the shards.
func newSpreads(shards []*shard, rules *hotparam.Rules) []*spread {
	spreads, turns := make([]*spread, len(shards[0].read)), new(atomic.Int64)
	for i := range spreads {
		spreads[i] = &spread{
			reader: i, turns: turns, shards: shards, homes: homes(rules, len(shards)), batches: make([]*batch, len(shards)),
		}
	}
	return spreads
}

// begin takes an empty batch for each shard; it waits while a shard is too far
// behind.
func (s *spread) begin() {
	for i, shard := range s.shards {
		if s.batches[i] == nil {
			s.batches[i] = <-shard.free
		}
	}
}

// end hands over what one read brought. Its first packet arrived at arrived, and
// nothing that came to the reader before now is missing. The reader works it off
// itself, unless it is behind or the shard has work still. At least each tick all
// shards get a batch, so that they know the time.
func (s *spread) end(arrived, now time.Time, behind bool) {
	since := now.Sub(s.told)
	all := since >= tick || since < 0
	if all {
		s.told = now
	}
	for k := range s.shards {
		i := (k + s.reader) % len(s.shards) // readers begin at different ones
		shard, b := s.shards[i], s.batches[i]
		if !all && b.empty() {
			continue
		}
		b.reader, b.arrived, b.now = s.reader, arrived, now
		if !behind && shard.tryWork(b) {
			b.reset()
			continue
		}
		shard.pending.Add(1)
		shard.queue <- b // has room: there are no more batches than that
		s.batches[i] = nil
	}
}

// Count implements [Handler].
func (s *spread) Count(c Count) { s.packet([]Count{c}) }

// packet takes the counts of a packet.
func (s *spread) packet(counts []Count) {
	if len(counts) == 0 {
		return
	}
	for _, b := range s.batches {
		b.begin(&counts[0])
	}
	for i := range counts {
		c := &counts[i]
		s.batches[s.place(c.Rule, c.Hash)].add(c)
	}
}

// place is the shard that has a key.
func (s *spread) place(rule int, hash uint64) int {
	if at := s.homes[rule]; at >= 0 {
		return at
	}
	return int(hash>>56) * len(s.shards) >> 8 // the windows' indexes and cells take lower bits
}

// Hidden implements [Handler].
func (s *spread) Hidden(when time.Time, n int64) {
	for _, b := range s.batches {
		b.hidden = append(b.hidden, hidden{when, n})
	}
}

// Held implements [Handler]. As Lost and Found it is called with the senders' lock
// held, so turns are the order in which things became known.
func (s *spread) Held(rule int, n, untold int64) {
	turn := s.turns.Add(1)
	for _, b := range s.batches {
		b.held = append(b.held, bound{rule, n, untold, turn})
	}
}

// Lost implements [Handler].
func (s *spread) Lost(when time.Time) {
	turn := s.turns.Add(1)
	for _, b := range s.batches {
		b.losses = append(b.losses, loss{when, false, turn})
	}
}

// Found implements [Handler].
func (s *spread) Found(newest time.Time) {
	turn := s.turns.Add(1)
	for _, b := range s.batches {
		b.losses = append(b.losses, loss{newest, true, turn})
	}
}

// Missing implements [Handler]. A gap only becomes smaller, so the order does not matter.
func (s *spread) Missing(g Gap) {
	for _, b := range s.batches {
		b.missing = append(b.missing, g)
	}
}

// Spare implements [Handler].
func (s *spread) Spare(gap uint64, rule int, hash uint64, known bool) {
	b := s.batches[s.place(rule, hash)]
	b.spared = append(b.spared, spared{gap, hash, rule, known})
}

// Healed implements [Handler].
func (s *spread) Healed(c Count, until time.Time) {
	b := s.batches[s.place(c.Rule, c.Hash)]
	c.Text = bytes.Clone(c.Text)
	b.healed = append(b.healed, healed{c, until})
}

// Moved implements [Handler].
func (s *spread) Moved(c Count, from, to time.Time) {
	b := s.batches[s.place(c.Rule, c.Hash)]
	c.Text = bytes.Clone(c.Text)
	b.moved = append(b.moved, moved{c, from, to})
}
