package aggregator

import "github.com/hotparam/hotparam/internal/ring"

// highIn returns the most that a key can count in the window of v that ends with a pane.
func (w *watched) highIn(v *view, pane int64) int64 {
	if i := w.entries[v.number]; i >= 0 {
		_, high := v.Bounds(i, pane)
		return high
	}
	return v.least - 1 + v.bound // with a higher count it would have an entry
}

// countAndNeed returns the low count of a hot key in the newest ended window, and the count
// that it needs there: to stay hot if listed is true, and to become hot otherwise.
func (w *watched) countAndNeed(listed bool) (low, least int64) {
	v := w.holder.view
	low, _ = w.bounds(v, v.closed)
	n := w.needs(w.holder, v.closed)
	if listed {
		return low, n.exit
	}
	return low, n.enter
}

// isOver reports whether the window that made the key hot has ended.
func (w *watched) isOver() bool {
	v := w.holder.view
	return v.closed != ring.Never && !v.Start(v.closed+1).Before(w.marks[w.holder.number].over)
}

// lowIn returns the count of a key in the window of v that ends with a pane.
func (w *watched) lowIn(v *view, pane int64) int64 {
	if i := w.entries[v.number]; i >= 0 {
		low, _ := v.Bounds(i, pane)
		return low
	}
	return 0
}

// needs returns the counts that decide whether t makes or holds w hot, in the window that ends
// with a pane.
func (w *watched) needs(t *threshold, pane int64) needs {
	i := w.entries[t.view.number]
	return t.needs(w.exception, i, t.view.Name(i), pane)
}

// bounds returns the low and high count of w in the window of v that ends with a pane. The key
// has an entry there.
func (w *watched) bounds(v *view, pane int64) (low, high int64) {
	return v.Bounds(w.entries[v.number], pane)
}
