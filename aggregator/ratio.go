package aggregator

// ratio returns a count divided by the count that the threshold needed. If the need is unknown,
// as for a key that another detector found, it is 1, since the key is hot. While such a key's
// count is only known in part, the ratio is at least its ratio there.
func (m *mark) ratio(count int64) float64 {
	if m.need == 0 {
		return max(1, m.before)
	}
	return max(float64(count)/float64(m.need), m.before)
}

// learn records the count that a threshold needed in a window that has ended. It keeps the
// previous one if that is unknown after a loss.
func (m *mark) learn(n needs) {
	if n.enter > 0 {
		m.need = n.enter
	}
}

// ratio returns the highest ratio of the thresholds that hold a key hot, by its current counts
// and the counts that were needed in the newest ended window.
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
