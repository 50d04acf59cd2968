package limiter

// numbers returns w.last, and for each slot the time since the previous slot and its permits. If
// permits are reserved for a time after w.last, it adds the time from the newest slot to the latest
// of them. That number has no partner, which is how setNumbers finds it.
func (w *window[F]) numbers() []int64 {
	all, before := []int64{w.last}, int64(0)
	for _, s := range w.slots.live() {
		all = append(all, s.start-before, s.n)
		before = s.start
	}
	if w.due > w.last && len(all) > 1 {
		all = append(all, max(0, w.due-before))
	}
	return all
}

// encodeOthers returns the views of the other quotas, each as the state of a window of its own.
func (w *window[F]) encodeOthers() (all []encodedState) {
	for _, o := range w.others {
		q := *o.quota
		q.Penalty = 0 // the key's first state has the lock
		all = append(all, encodedState{q, (&window[F]{clock: w.clock, windowView: o}).numbers()})
	}
	return all
}

func (w *window[F]) setNumbers(n []int64) bool {
	if len(n) == 0 || n[0] < 0 || n[0] > maxNow {
		return false
	}
	w.last, w.since = n[0], 0
	start := int64(0)
	for n = n[1:]; len(n) > 1; n = n[2:] {
		if n[0] < 0 || n[0] > maxNow-start || n[1] < 0 || n[1] > maxFill+maxOwed-w.total {
			return false
		}
		start += n[0]
		w.slots.add(slot{start, n[1]})
		w.total += n[1]
	}
	if len(n) == 0 {
		return true
	}
	w.due = start + n[0]
	return w.slots.len() > 0 && n[0] >= 0 && n[0] <= maxNow-start
}
