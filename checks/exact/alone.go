package exact

// step is one threshold's decision on a key: it became hot, or cooled.
type step struct {
	key       string
	hot       bool
	instant   int64  // time of the count that reached the threshold, or the end of the pane that decided
	count     int64  // the key's count in the window
	atPaneEnd bool   // decided at the end of a pane
	threshold string // the threshold's name
}

// stepsAlone returns the steps of one key under a threshold that does not compare keys. The key
// becomes hot by a count and cools at the end of a pane.
func (c *Counter) stepsAlone(t ThresholdSpec, key string, s *countSeries) (steps []step) {
	w := NewWindow(t.D)
	pane, panes := w.Width, w.Panes
	needs := func(last int64) Needs {
		if t.Kind == "jump" {
			return t.jumpNeeds(s, c.first, last)
		}
		return t.ownNeeds()
	}
	var hot *hotTimes                  // nil while the key is not hot
	next := int64(0)                   // the next pane to check for cooling
	coolUntil := func(current int64) { // checks the panes that ended before the current one
		for ; hot != nil && next < current; next++ {
			end := (next + 1) * pane
			n := s.sumBetween(end-panes*pane, end)
			if hot.coolsAt(t, end, n < needs(next).Exit) {
				hot = nil
				steps = append(steps, step{key: key, instant: end, count: n, atPaneEnd: true, threshold: t.Name()})
			}
		}
	}
	for i := 0; i < len(s.times); {
		instant := s.times[i]
		for i < len(s.times) && s.times[i] == instant {
			i++
		}
		index := instant / pane
		coolUntil(index)
		if hot != nil {
			continue
		}
		n := s.cumulative[i-1] - s.sumBefore((index-panes+1)*pane)
		if n < t.N {
			continue
		}
		if need := needs(index); need.Known && n >= need.Enter {
			hot, next = newHotKey(instant), index
			steps = append(steps, step{key: key, hot: true, instant: instant, count: n, threshold: t.Name()})
		}
	}
	coolUntil(c.last / pane)
	return steps
}

const never = -1

// hotTimes holds when a key became hot and when its count first fell below its exit.
type hotTimes struct {
	hotSince   int64
	belowSince int64 // end of the first window of the present run of windows below the exit; or never
}

func newHotKey(since int64) *hotTimes { return &hotTimes{since, never} }

// coolsAt records the window that ends at end and reports whether the key cools with it.
func (m *hotTimes) coolsAt(t ThresholdSpec, end int64, below bool) bool {
	switch {
	case !below:
		m.belowSince = never
	case m.belowSince == never:
		m.belowSince = end
	}
	return m.belowSince != never && end >= m.hotSince+int64(t.Hold) && end-m.belowSince >= int64(t.CoolDown)
}
