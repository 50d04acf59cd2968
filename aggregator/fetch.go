package aggregator

import (
	"github.com/hotparam/hotparam/aggregator/internal/window"
	"github.com/hotparam/hotparam/internal/decode"
)

const (
	// fetchAhead is the number of counts that are looked up in memory before they are counted.
	// With a million keys that is twice as fast.
	fetchAhead = 120
	// fetchFrom is the number of units from which on a window always gains from reading ahead.
	// Smaller windows stay in the processor's caches if the process does nothing but counting.
	// In a shard, whose packets come from the kernel, reading ahead always pays.
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

// fetch reads the memory that the planned counts are about to use, in windows with at least
// from units.
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

// Counts counts the counts of a packet.
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
