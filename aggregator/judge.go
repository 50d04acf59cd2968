package aggregator

import (
	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/aggregator/decode"
)

// judgeCount judges the key of c by the thresholds of v, and publishes it if it becomes hot.
// k is the key in the window of v where it counts most.
func (d *Detector) judgeCount(v *view, c *decode.Count, k *candidate) {
	if k.w = v.watched(k.entry); k.w == nil {
		if k.w = v.watch.keys[string(c.Text)]; k.w != nil {
			k.w.pin(v, k.entry)
		}
	}
	v.busy = max(v.busy, max(k.pane, v.Now())+int64(v.Panes))
	for _, t := range v.thresholds {
		if k.low < v.level || t.comparesKeys() || k.isHot(t) || !d.judge(t, k) || !k.w.listed {
			continue
		}
		h := k.w.describe(k.pane)
		if !h.Estimated {
			h.Low = k.low
		}
		h.Ratio = k.w.marks[t.number].ratio(k.low)
		d.publish(hotparam.Change{Hot: []hotparam.Hot{h}})
	}
	if w := k.w; w != nil && w.by != nil && w.by.view == v {
		w.recordCount(c)
	}
}

// judge decides whether t, which does not hold the key hot, makes it hot or suspect. It
// reports whether the key is hot only now.
func (d *Detector) judge(t *threshold, k *candidate) (entered bool) {
	v := t.view
	n := t.needs(v.watch.exceptionOf(k.w, k.text), k.entry, k.text, k.pane)
	switch {
	case n.enter != hotparam.Unknown && k.low >= n.enter:
		return d.enter(t, k, n.enter)
	case d.suspects.takes(v.watch, k.w) && v.AtMost(k.hash, k.text, k.pane) >= n.maybe:
		d.suspect(t, k)
	}
	return false
}

// judgeUncounted judges the key of c, which has no entry: what its cell hides may reach a
// threshold.
func (d *Detector) judgeUncounted(v *view, c *decode.Count) {
	if d.suspects.full(v.watch) {
		return
	}
	w := v.watch.keys[string(c.Text)]
	most := v.AtMost(c.Hash, c.Text, v.Now())
	for _, t := range v.thresholds {
		if most >= t.unseen(v.watch.exceptionOf(w, c.Text)) {
			d.suspect(t, &candidate{w: w, entry: -1, text: c.Text, hash: c.Hash, when: c.When})
			return
		}
	}
}
