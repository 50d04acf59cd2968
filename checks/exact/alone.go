package exact

// step is one threshold's decision on a key: it became hot, or cooled.
type step struct {
	key   string
	hot   bool
	at    int64  // time of the count that reached the threshold, or the end of the pane that decided
	count int64  // the key's count in the window
	ended bool   // decided at the end of a pane
	hotAt string // the threshold's name
}

// alone returns the steps of one key under a threshold that does not compare keys. The key
// becomes hot by a count and cools at the end of a pane.
func (c *Counter) alone(t Threshold, key string, s *series) (steps []step) {
	pane, panes := t.pane(), t.panes()
	needs := func(last int64) Needs {
		if t.Kind == "jump" {
			return t.jump(s, c.first, last)
		}
		return t.alone()
	}
	var m *mark                        // nil while the key is not hot
	next := int64(0)                   // the next pane to check for cooling
	coolUntil := func(current int64) { // checks the panes that ended before the current one
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

// mark holds when a key became hot and when its count first fell below its exit.
type mark struct {
	since int64
	below int64 // end of the first window of the present run of windows below the exit; or never
}

func newMark(since int64) *mark { return &mark{since, never} }

// cools records the window that ends at end and reports whether the key cools with it.
func (m *mark) cools(t Threshold, end int64, below bool) bool {
	switch {
	case !below:
		m.below = never
	case m.below == never:
		m.below = end
	}
	return m.below != never && end >= m.since+int64(t.Hold) && end-m.below >= int64(t.CoolDown)
}
