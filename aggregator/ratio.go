package aggregator

// ratio returns a count divided by the count that the threshold needed. Without a
// known need, as of a key that another detector found, it is 1: the key is hot.
func (m *mark) ratio(count int64) float64 {
	if m.need == 0 {
		return 1
	}
	return float64(count) / float64(m.need)
}

// learn notes what a threshold needed in a window that is over. After a loss that
// cannot be told: then what was needed before still counts.
func (m *mark) learn(n needs) {
	if n.enter > 0 {
		m.need = n.enter
	}
}

// ratio returns the highest ratio of the thresholds that hold a key hot, by its
// present counts and what was needed in the newest window that is over.
func (w *watched) ratio() (highest float64) {
	for _, t := range w.rule.thresholds {
		m, v := &w.marks[t.number], t.view
		if !m.hot {
			continue
		}
		over, _ := w.bounds(v, v.closed)
		now, _ := w.bounds(v, v.Now())
		highest = max(highest, m.ratio(max(over, now)))
	}
	return highest
}
