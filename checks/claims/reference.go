package claims

// reference is the truth about the keys of one rule: how often each came in
// each pane. A window is the panes up to one of them, that one included.
type reference struct {
	width, panes int64 // of a pane in nanoseconds; of a window
	ring         int64 // panes kept
	dense        int32

	newest int64
	seen   int64 // keys that come once, so far
	slots  []pane

	// missing is what of a pane's counts did not come through; see gap.
	gaps int

	blurs bool // some counts are blurred

	// Of the newest window that is over:
	closed int64
	sums   []int32 // by key
	above  []int32 // keys that reach the level, in no order
	is     []bool  // by key: is in above
	level  int32
}

// pane is one pane's counts.
type pane struct {
	number  int64
	counts  []uint32 // by key
	touched []int32  // keys with a count
	first   int64    // how many keys that come once had come before
	gaps    map[int32]gap
	blurred map[int32][]blurred
}

// gap is what of a key's count is not known to the aggregator.
type gap struct {
	absent int64 // was lost, or is on its way for longer than the lag
	secret int64 // of that, what the aggregator cannot even know to be absent
}

// newReference keeps windows that begin up to reach before the newest one.
func newReference(r Rule, dense int32, reach int64) *reference {
	ref := &reference{
		width: r.width(), panes: r.panes(), dense: dense,
		newest: never, closed: never,
		sums: make([]int32, dense), is: make([]bool, dense), level: int32(r.N),
	}
	ref.ring = 2*ref.panes + 2*((reach+ref.width-1)/ref.width) + 4
	ref.slots = make([]pane, ref.ring)
	for i := range ref.slots {
		ref.slots[i].number = never
	}
	return ref
}

const never = -1 << 62

// index is the number of the pane that holds an instant; all are after 1970.
func (r *reference) index(at int64) int64 { return at / r.width }

// end is when a pane is over.
func (r *reference) end(pane int64) int64 { return (pane + 1) * r.width }

// turn goes on to the pane that holds an instant.
func (r *reference) turn(at int64) {
	pane := r.index(at)
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
func (r *reference) add(key int32, n uint32) {
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

// at is a pane that is kept, nil for others.
func (r *reference) at(number int64) *pane {
	if p := &r.slots[(number%r.ring+r.ring)%r.ring]; p.number == number {
		return p
	}
	return nil
}

// count is a key's count in one pane.
func (r *reference) count(key int32, number int64) int64 {
	p := r.at(number)
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
	if next := r.at(number + 1); next != nil {
		after = next.first
	}
	if once := int64(key - r.dense); p.first <= once && once < after {
		return 1
	}
	return 0
}

// truth is a key's count in the window that ends with a pane.
func (r *reference) truth(key int32, last int64) int64 {
	sum := int64(0)
	for number := last - r.panes + 1; number <= last; number++ {
		sum += r.count(key, number)
	}
	return sum
}

// most is the highest count of a key in the windows that end with a pane from
// one to another.
func (r *reference) most(key int32, from, to int64) int64 {
	to = min(to, r.newest)
	if r.blurs {
		_, best, _ := r.bounds(key, from)
		for last := from + 1; last <= to; last++ {
			_, most, _ := r.bounds(key, last)
			best = max(best, most)
		}
		return best
	}
	sum := r.truth(key, from)
	best := sum
	for last := from + 1; last <= to; last++ {
		sum += r.count(key, last) - r.count(key, last-r.panes)
		best = max(best, sum)
	}
	return best
}

// gap is the uncertainty of a key's count in the window that ends with a pane.
func (r *reference) gap(key int32, last int64) (sum gap) {
	if r.gaps == 0 {
		return sum
	}
	for number := last - r.panes + 1; number <= last; number++ {
		if p := r.at(number); p != nil {
			g := p.gaps[key]
			sum.absent += g.absent
			sum.secret += g.secret
		}
	}
	return sum
}

// miss changes the uncertainty of a key's count in [from, to): each pane of it
// may have held all of the count.
func (r *reference) miss(key int32, from, to int64, change gap) {
	for number := r.index(from); number <= r.index(to-1); number++ {
		p := r.at(number)
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

// close goes on to the window that ends with the next pane, and returns which keys
// reach the threshold in it.
func (r *reference) close() (reached []int32) {
	r.closed++
	r.move(r.closed, 1)
	r.move(r.closed-r.panes, -1)
	kept := r.above[:0]
	for _, key := range r.above {
		if r.is[key] = r.sums[key] >= r.level; r.is[key] {
			kept = append(kept, key)
		}
	}
	r.above = kept
	return kept
}

// reach is how many keys have at least n in the newest window that is over.
func (r *reference) reach(n int64) (keys int) {
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

// move adds a pane's counts to those of the window, or takes them away.
func (r *reference) move(number int64, sign int32) {
	p := r.at(number)
	if p == nil {
		return
	}
	for _, key := range p.touched {
		r.sums[key] += sign * int32(p.counts[key])
		if r.sums[key] >= r.level && !r.is[key] {
			r.is[key] = true
			r.above = append(r.above, key)
		}
	}
}
