package claims

// blur is the uncertainty of a count's place in time, since the clock of its instance is not
// known exactly. The count may be placed up to early before and up to late after its arrival at
// the collector. The doubt is added to early if the clock may be slow and the count is known to
// be in doubt.
type blur struct{ early, late, doubt int64 }

// blurred is a count of a key in a pane with its blur in panes.
type blurred struct {
	blur
	n int64
}

// recordBlur records that n counts of a key in the newest pane are blurred. begin is the time at
// which they begin.
func (r *trueCounts) recordBlur(key int32, n, begin int64, uncertainty blur) {
	b := blurred{blur{r.newest - r.index(begin-uncertainty.early), r.index(begin+uncertainty.late) - r.newest, 0}, n}
	b.doubt = r.newest - r.index(begin-uncertainty.early-uncertainty.doubt) - b.early
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

// bounds returns the lowest and the highest count that a key can have in the window that ends with
// a pane, given what can be known about the clocks. Both equal the key's count there if all clocks
// are right. placed is the lowest count without the doubtful counts.
func (r *trueCounts) bounds(key int32, last int64) (lowest, highest, placed int64) {
	truth := r.trueCount(key, last)
	lowest, highest, placed = truth, truth, truth
	if !r.blurs {
		return lowest, highest, placed
	}
	first := last - r.panes + 1
	for number := r.newest - r.ring + 1; number <= r.newest; number++ {
		p := r.paneAt(number)
		if p == nil {
			continue
		}
		for _, b := range p.blurred[key] {
			from, to := number-b.early, number+b.late
			if first > number || number > last {
				if from-b.doubt <= last && to >= first {
					highest += b.n
				}
				continue
			}
			if from < first || to > last {
				lowest -= b.n
			}
			if from-b.doubt < first || to > last {
				placed -= b.n
			}
		}
	}
	return lowest, highest, placed
}
