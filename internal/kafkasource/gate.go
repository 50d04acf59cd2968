package kafkasource

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// gate stands between a detector and its publisher. It stays closed until the partition's part
// of the hot set has been taken over and the partition is covered. The previous owner has judged
// the earlier records, and keys that were hot then may have cooled since. When the gate opens,
// it publishes the keys that are hot and the newest suspects. It is not safe for concurrent use.
type gate struct {
	to       PartitionPublisher
	isOpen   bool
	asked    bool // the detector's next refresh goes to taken
	taken    []published.Hot
	suspects []published.Hot
	part     int
	found    map[rules.Key]published.Hot // keys that became hot, as they were at that time
}

// maxFound bounds the keys in found: as many as an owner can publish. The newest are kept.
// Others are published if they are still hot when the gate opens.
const maxFound = 1000

// Publish implements [aggregator.Publisher].
func (g *gate) Publish(c published.Change) {
	if g.isOpen {
		g.to.Publish(c)
		return
	}
	if g.found == nil {
		g.found = make(map[rules.Key]published.Hot)
	}
	for i := range c.Hot {
		g.found[c.Hot[i].Key] = c.Hot[i]
		if len(g.found) > maxFound {
			g.dropOldest()
		}
	}
}

// dropOldest forgets the key that became hot first, which was most likely judged already.
func (g *gate) dropOldest() {
	var oldest rules.Key
	var since time.Time
	for key, h := range g.found {
		if since.IsZero() || h.Since.Before(since) {
			oldest, since = key, h.Since
		}
	}
	delete(g.found, oldest)
}

// Refresh implements [aggregator.Publisher].
func (g *gate) Refresh(part int, hot []published.Hot) {
	switch {
	case g.asked:
		g.taken = slices.Clone(hot)
	case g.isOpen:
		g.to.Refresh(part, hot)
	}
}

// Suspects implements [aggregator.Publisher].
func (g *gate) Suspects(part int, suspects []published.Hot) {
	if g.isOpen {
		g.to.Suspects(part, suspects)
		return
	}
	g.part, g.suspects = part, slices.Clone(suspects)
}

// Summary implements [aggregator.SummaryPublisher].
func (g *gate) Summary(part int, s published.Summary) {
	if to, ok := g.to.(aggregator.SummaryPublisher); ok && g.isOpen {
		to.Summary(part, s)
	}
}

// Instances implements [aggregator.Publisher]. A detector knows none.
func (g *gate) Instances([]published.Instance) {}

// open lets all changes through from now on. refresh makes the detector publish its hot keys. An
// adopted key is published with the higher of both counts, since its windows may have begun
// before the first record that was read again.
func (g *gate) open(adopted []published.Hot, refresh func()) {
	known := make(map[rules.Key]*published.Hot, len(adopted))
	for i := range adopted {
		known[adopted[i].Key] = &adopted[i]
	}
	g.asked = true
	refresh()
	g.asked, g.isOpen = false, true
	for i := range g.taken {
		h := &g.taken[i]
		before := known[h.Key]
		if before == nil {
			continue
		}
		h.Ratio = max(h.Ratio, before.Ratio) // otherwise keys found in the meantime would take its place
		if before.Low > h.Low {
			h.Low, h.High, h.Rate, h.Top = before.Low, before.High, before.Rate, before.Top
		}
	}
	if len(g.taken) > 0 {
		g.to.Publish(published.Change{Hot: g.taken})
	}
	if len(g.suspects) > 0 {
		g.to.Suspects(g.part, g.suspects)
	}
	g.taken, g.suspects, g.found = nil, nil, nil
}
