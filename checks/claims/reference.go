package claims

import "github.com/hotparam/hotparam/checks/exact"

// trueCounts holds the true counts of the keys of one rule in each pane. A window consists of the
// panes up to one of them, including that one.
type trueCounts struct {
	width, panes int64 // length of a pane in nanoseconds; panes of a window
	ring         int64 // number of panes kept
	dense        int32

	newest int64
	seen   int64 // keys so far that come once
	slots  []referencePane

	// gaps is the number of gaps in all panes; see gap.
	gaps int

	blurs bool // some counts are blurred

	// State of the last closed window:
	closed  int64
	sums    []int32 // count of each key
	above   []int32 // keys that reach the level, in no order
	isAbove []bool  // whether each key is in above
	level   int32
}

// referencePane is one pane's counts.
type referencePane struct {
	number  int64
	counts  []uint32 // count of each key
	touched []int32  // keys with a count
	first   int64    // keys that come once in all earlier panes
	gaps    map[int32]gap
	blurred map[int32][]blurred
}

// gap is the part of a key's count that the aggregator does not know.
type gap struct {
	absent int64 // lost, or in transit for longer than the lag
	secret int64 // the part of absent that the aggregator cannot even know to be absent
}

// newReference returns a reference that keeps windows that begin up to reach before the newest
// one.
func newReference(r HotRule, dense int32, reach int64) *trueCounts {
	w := exact.NewWindow(r.D)
	ref := &trueCounts{
		width: w.Width, panes: w.Panes, dense: dense,
		newest: never, closed: never,
		sums: make([]int32, dense), isAbove: make([]bool, dense), level: int32(r.N),
	}
	ref.ring = 2*ref.panes + 2*((reach+ref.width-1)/ref.width) + 4
	ref.slots = make([]referencePane, ref.ring)
	for i := range ref.slots {
		ref.slots[i].number = never
	}
	return ref
}

const never = -1 << 62

// index returns the number of the pane that holds an instant, which must be after 1970.
func (r *trueCounts) index(instant int64) int64 { return instant / r.width }

// paneEnd returns the time at which a pane ends.
func (r *trueCounts) paneEnd(pane int64) int64 { return (pane + 1) * r.width }

// advanceTo advances to the pane that holds an instant.
func (r *trueCounts) advanceTo(instant int64) {
	pane := r.index(instant)
	if r.newest == never || pane-r.newest > r.ring {
		r.newest = pane - r.ring
	}
	for r.newest < pane {
		r.newest++
		p := &r.slots[r.newest%r.ring]
		for _, key := range p.touched {
			p.counts[key] = 0
		}
		r.gaps -= len(p.gaps)
		p.touched, p.number, p.first, p.gaps, p.blurred = p.touched[:0], r.newest, r.seen, nil, nil
	}
}

// add counts n for a key in the newest pane.
func (r *trueCounts) add(key int32, n uint32) {
	if key >= r.dense {
		r.seen++
		return
	}
	p := &r.slots[r.newest%r.ring]
	if p.counts == nil {
		p.counts = make([]uint32, r.dense)
	}
	if p.counts[key] == 0 {
		p.touched = append(p.touched, key)
	}
	p.counts[key] += n
}

// paneAt returns a pane that is kept, or nil.
func (r *trueCounts) paneAt(number int64) *referencePane {
	if p := &r.slots[(number%r.ring+r.ring)%r.ring]; p.number == number {
		return p
	}
	return nil
}

// count returns a key's count in one pane.
func (r *trueCounts) count(key int32, number int64) int64 {
	p := r.paneAt(number)
	switch {
	case p == nil:
		return 0
	case key < r.dense:
		if p.counts == nil {
			return 0
		}
		return int64(p.counts[key])
	}
	after := r.seen
	if next := r.paneAt(number + 1); next != nil {
		after = next.first
	}
	if once := int64(key - r.dense); p.first <= once && once < after {
		return 1
	}
	return 0
}

// trueCount returns a key's count in the window that ends with a pane.
func (r *trueCounts) trueCount(key int32, last int64) int64 {
	sum := int64(0)
	for number := last - r.panes + 1; number <= last; number++ {
		sum += r.count(key, number)
	}
	return sum
}

// highestCount returns the highest count of a key in the windows that end with a pane between from
// and to, both included.
func (r *trueCounts) highestCount(key int32, from, to int64) int64 {
	to = min(to, r.newest)
	if r.blurs {
		_, best, _ := r.bounds(key, from)
		for last := from + 1; last <= to; last++ {
			_, highest, _ := r.bounds(key, last)
			best = max(best, highest)
		}
		return best
	}
	sum := r.trueCount(key, from)
	best := sum
	for last := from + 1; last <= to; last++ {
		sum += r.count(key, last) - r.count(key, last-r.panes)
		best = max(best, sum)
	}
	return best
}

// unknownPart returns the uncertainty of a key's count in the window that ends with a pane.
func (r *trueCounts) unknownPart(key int32, last int64) (sum gap) {
	if r.gaps == 0 {
		return sum
	}
	for number := last - r.panes + 1; number <= last; number++ {
		if p := r.paneAt(number); p != nil {
			g := p.gaps[key]
			sum.absent += g.absent
			sum.secret += g.secret
		}
	}
	return sum
}

// addGap changes the uncertainty of a key's count in [from, to). Each pane of that time may have
// held the whole count.
func (r *trueCounts) addGap(key int32, from, to int64, change gap) {
	for number := r.index(from); number <= r.index(to-1); number++ {
		p := r.paneAt(number)
		if p == nil {
			continue
		}
		if p.gaps == nil {
			p.gaps = make(map[int32]gap)
		}
		g, known := p.gaps[key]
		if !known {
			r.gaps++
		}
		p.gaps[key] = gap{g.absent + change.absent, g.secret + change.secret}
	}
}

// closeWindow moves to the window that ends with the next pane and returns the keys that reach the
// threshold in it.
func (r *trueCounts) closeWindow() (reached []int32) {
	r.closed++
	r.addPane(r.closed, 1)
	r.addPane(r.closed-r.panes, -1)
	kept := r.above[:0]
	for _, key := range r.above {
		if r.isAbove[key] = r.sums[key] >= r.level; r.isAbove[key] {
			kept = append(kept, key)
		}
	}
	r.above = kept
	return kept
}

// countReaching returns the number of keys that have at least n in the last closed window.
func (r *trueCounts) countReaching(n int64) (keys int) {
	if n <= 1 {
		keys = int(r.seen)
	}
	for _, sum := range r.sums {
		if int64(sum) >= n {
			keys++
		}
	}
	return keys
}

// addPane adds a pane's counts to those of the window, or subtracts them if sign is -1.
func (r *trueCounts) addPane(number int64, sign int32) {
	p := r.paneAt(number)
	if p == nil {
		return
	}
	for _, key := range p.touched {
		r.sums[key] += sign * int32(p.counts[key])
		if r.sums[key] >= r.level && !r.isAbove[key] {
			r.isAbove[key] = true
			r.above = append(r.above, key)
		}
	}
}
