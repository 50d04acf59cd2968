package aggregator

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam/aggregator/internal/window"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/ring"
)

// watch adds the key to the watched keys, pinned to its entry in v, if it has one. It reports
// false, and changes nothing, if there is no room for the key's text.
func (k *candidate) watch(v *view) bool {
	w := k.w
	if w == nil {
		w = v.watch.newWatched(k.text, k.hash)
	}
	if k.entry < 0 {
		v.watch.keys[w.text] = w
	} else if !w.pin(v, k.entry) {
		return false
	}
	k.w = w
	return true
}

// isHeldBy reports whether t holds w hot. A nil w is a key that is not watched.
func (w *watched) isHeldBy(t *threshold) bool { return w != nil && w.marks[t.number].hot }

func (r *ruleWatch) newWatched(text []byte, hash uint64) *watched {
	w := &watched{rule: r, text: string(text), hash: hash, entries: make([]int32, len(r.views)), marks: make([]thresholdState, len(r.thresholds))}
	w.tag = window.Tag{Pinned: true, Owner: w}
	for i := range w.entries {
		w.entries[i] = -1
	}
	if len(r.rule.Except) > 0 {
		w.exception = r.rule.Exception(w.text)
	}
	return w
}

// pin ties w to its entry in v. It reports false if the entry has no name.
func (w *watched) pin(v *view, i int32) bool {
	if w.entries[v.number] >= 0 {
		return true
	}
	if !v.Tie(i, &w.tag) {
		return false
	}
	w.entries[v.number] = i
	v.pinned++
	w.rule.keys[w.text] = w
	return true
}

// unpin unties w from its entry in v.
func (w *watched) unpin(v *view) {
	if i := w.entries[v.number]; i >= 0 {
		v.Tie(i, nil)
		w.entries[v.number] = -1
		v.pinned--
	}
}

// release forgets a key that is neither hot nor suspect.
func (w *watched) release() {
	if w.hotMarks > 0 || w.suspect != nil {
		return
	}
	for _, v := range w.rule.views {
		w.unpin(v)
	}
	w.tag.Pinned = false
	delete(w.rule.keys, w.text)
}

// watched returns the key that is tied to an entry, or nil.
func (v *view) watched(i int32) *watched {
	if t := v.Tag(i); t != nil {
		return t.Owner.(*watched)
	}
	return nil
}

// setMark sets the state of w by t. The first threshold that makes the key hot is its holder.
// When that no longer holds it, another one takes its place. A key that has cooled keeps its
// last holder, which describes it.
func (w *watched) setMark(t *threshold, m thresholdState) {
	was := w.marks[t.number].hot
	w.marks[t.number] = m
	switch {
	case m.hot && !was:
		t.view.marked++
		w.hotMarks++
		if w.holder == nil {
			w.holder = t
		}
	case was && !m.hot:
		t.view.marked--
		w.hotMarks--
		if other := slices.IndexFunc(w.marks, func(m thresholdState) bool { return m.hot }); w.holder == t && other >= 0 {
			w.holder = w.rule.thresholds[other]
		}
	}
}

// recordCount adds c to the rate and the origins of a hot key.
func (w *watched) recordCount(c *decode.Count) {
	if w.holder == nil {
		return
	}
	w.meter.add(c.When, c.N)
	w.skews.record(w.holder.view, c)
	if c.Instance == "" {
		return
	}
	v := w.holder.view
	if w.origins == nil {
		w.origins = newOrigins(v.Pane*time.Duration(v.Panes), c.When)
		w.origins.unseen = max(0, v.Sum(w.entries[v.number], v.newest)-c.N)
		w.origins.seen = v.Start(v.newest + 1)
	}
	w.origins.add(c.Instance, c.When, c.N)
}

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
