package aggregator

import "github.com/hotparam/hotparam/aggregator/decode"

const (
	// fetchAhead is how many counts are looked up in memory before they are counted. The
	// lookups do not depend on each other, so the processor waits for several cache misses at
	// a time. With a million keys that is twice as fast.
	fetchAhead = 32
	// fetchFrom is how many units a window must have for that to pay in any case. Fewer stay
	// in the processor's caches if nothing but counting goes on. In a shard, whose packets
	// come from the kernel, it always pays.
	fetchFrom = 1 << 18
)

// fetch reads the memory that a count is about to use, of windows that have at least so many
// units.
func (d *Detector) fetch(rule int, hash uint64, from int) {
	if r := d.rules[rule]; r != nil {
		for _, v := range r.views {
			v.Fetch(hash, from)
		}
	}
}

// Counts takes the counts of a packet.
func (d *Detector) Counts(counts []decode.Count) {
	for len(counts) > 0 {
		n := min(len(counts), fetchAhead)
		for i := range counts[:n] {
			d.fetch(counts[i].Rule, counts[i].Hash, fetchFrom)
		}
		for i := range counts[:n] {
			d.count(&counts[i])
		}
		counts = counts[n:]
	}
}
