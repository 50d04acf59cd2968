package aggregator

import "github.com/hotparam/hotparam/aggregator/decode"

const (
	// fetchAhead is how many counts' places in memory are read before they are
	// counted: the places do not depend on each other, so the processor waits for
	// several at a time, where counting one after the other waits for each. With a
	// million keys that is twice as fast.
	fetchAhead = 32
	// fetchFrom is how many units a window has when that pays in any case; fewer
	// are in the processor's caches if nothing but counting goes on. To a shard the
	// packets come from the kernel, and it always pays.
	fetchFrom = 1 << 18
)

// fetch reads what a count is about to touch of windows of so many units.
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
