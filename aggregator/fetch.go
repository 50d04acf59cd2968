package aggregator

import (
	"github.com/hotparam/hotparam/aggregator/internal/window"
	"github.com/hotparam/hotparam/internal/decode"
)

const (
	// fetchAhead is how many counts are looked up in memory before they are counted. With a
	// million keys that is twice as fast.
	fetchAhead = 120
	// fetchFrom is how many units a window must have for that to pay in any case. Fewer stay
	// in the processor's caches if nothing but counting goes on. In a shard, whose packets
	// come from the kernel, it always pays.
	fetchFrom = 1 << 18
)

// ahead collects the hashes of counts of one rule, to read ahead for all of them.
type ahead struct {
	hashes [fetchAhead]uint64
	n      int
	rule   int
}

// at most as many as a window reads ahead for
var _ [window.FetchMost - fetchAhead]struct{}

// plan adds a count to those that are read ahead for.
func (d *Detector) plan(rule int, hash uint64, from int) {
	a := &d.ahead
	if rule != a.rule || a.n == fetchAhead {
		d.fetch(from)
		a.rule = rule
	}
	a.hashes[a.n] = hash
	a.n++
}

// fetch reads the memory that the planned counts are about to use, of windows that have at
// least so many units.
func (d *Detector) fetch(from int) {
	a := &d.ahead
	if a.n == 0 {
		return
	}
	if r := d.rules[a.rule]; r != nil {
		for _, v := range r.views {
			v.Fetch(a.hashes[:a.n], from)
		}
	}
	a.n = 0
}

// fetchBatch reads the memory that counts of a batch are about to use.
func (d *Detector) fetchBatch(counts []batchCount) {
	for i := range counts {
		d.plan(int(counts[i].rule), counts[i].hash, 0)
	}
	d.fetch(0)
}

// Counts takes the counts of a packet.
func (d *Detector) Counts(counts []decode.Count) {
	for len(counts) > 0 {
		n := min(len(counts), fetchAhead)
		for i := range counts[:n] {
			d.plan(counts[i].Rule, counts[i].Hash, fetchFrom)
		}
		d.fetch(fetchFrom)
		for i := range counts[:n] {
			d.count(&counts[i])
		}
		counts = counts[n:]
	}
}
