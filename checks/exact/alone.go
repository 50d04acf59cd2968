package exact

// step is what one threshold says of a key: that it is hot, or not any more.
type step struct {
	key   string
	hot   bool
	at    int64  // of the count that reached it; the end of the pane that was looked at
	count int64  // in the window
	ended bool   // decided when a pane was over
	hotAt string // the threshold's name
}

// alone goes through a key's life by a threshold that compares it with no other key: it
// becomes hot by a count, and cools when a pane is over.
func (c *Counter) alone(t Threshold, key string, s *series) (steps []step) {
	pane, panes := t.pane(), t.panes()
	needs := func(last int64) Needs {
		if t.Kind == "jump" {
			return t.jump(s, c.first, last)
		}
		return t.alone()
	}
	var m *mark                        // nil: not hot
	next := int64(0)                   // the pane that is looked at next
	coolUntil := func(current int64) { // panes before the current one are over
		for ; m != nil && next < current; next++ {
			end := (next + 1) * pane
			n := s.between(end-panes*pane, end)
			if m.cools(t, end, n < needs(next).Exit) {
				m = nil
				steps = append(steps, step{key: key, at: end, count: n, ended: true, hotAt: t.Name()})
			}
		}
	}
	for i := 0; i < len(s.at); {
		at := s.at[i]
		for i < len(s.at) && s.at[i] == at {
			i++
		}
		index := at / pane
		coolUntil(index)
		if m != nil {
			continue
		}
		n := s.sum[i-1] - s.before((index-panes+1)*pane)
		if n < t.N {
			continue
		}
		if need := needs(index); need.Known && n >= need.Enter {
			m, next = newMark(at), index
			steps = append(steps, step{key: key, hot: true, at: at, count: n, hotAt: t.Name()})
		}
	}
	coolUntil(c.last / pane)
	return steps
}

const never = -1

// mark is since when a key is hot, and for how long it has been below its exit.
type mark struct {
	since int64
	below int64 // end of the first window below the exit of those in a row; never
}

func newMark(since int64) *mark { return &mark{since, never} }

// cools notes the window that ends at an instant, and reports whether the key cools by it.
func (m *mark) cools(t Threshold, end int64, below bool) bool {
	switch {
	case !below:
		m.below = never
	case m.below == never:
		m.below = end
	}
	return m.below != never && end >= m.since+int64(t.Hold) && end-m.below >= int64(t.CoolDown)
}
