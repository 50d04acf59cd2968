package claims

// blur is how much earlier and later than they come counts may be placed, as their
// instance's clock is not known any better; and how much earlier besides, if it may be
// slow and they are known to be in doubt.
type blur struct{ early, late, doubt int64 }

// blurred is a count of a key in a pane, with its blur in panes.
type blurred struct {
	blur
	n int64
}

// blur notes that n counts of a key in the newest pane, which begin at an instant, are
// blurred.
func (r *reference) blur(key int32, n, at int64, by blur) {
	b := blurred{blur{r.newest - r.index(at-by.early), r.index(at+by.late) - r.newest, 0}, n}
	b.doubt = r.newest - r.index(at-by.early-by.doubt) - b.early
	if b.blur == (blur{}) {
		return
	}
	p := &r.slots[r.newest%r.ring]
	if p.blurred == nil {
		p.blurred = make(map[int32][]blurred)
	}
	p.blurred[key] = append(p.blurred[key], b)
	r.blurs = true
}

// bounds are the least and the most that a key can have in the window that ends with a
// pane, as the clocks are known: its count there if all are right. placed is the least
// without the doubtful counts.
func (r *reference) bounds(key int32, last int64) (least, most, placed int64) {
	truth := r.truth(key, last)
	least, most, placed = truth, truth, truth
	if !r.blurs {
		return least, most, placed
	}
	first := last - r.panes + 1
	for number := r.newest - r.ring + 1; number <= r.newest; number++ {
		p := r.at(number)
		if p == nil {
			continue
		}
		for _, b := range p.blurred[key] {
			from, to := number-b.early, number+b.late
			if first > number || number > last {
				if from-b.doubt <= last && to >= first {
					most += b.n
				}
				continue
			}
			if from < first || to > last {
				least -= b.n
			}
			if from-b.doubt < first || to > last {
				placed -= b.n
			}
		}
	}
	return least, most, placed
}
