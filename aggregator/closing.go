package aggregator

import (
	"bytes"
	"slices"

	"github.com/hotparam/hotparam/rules"
)

// closePane judges the keys of a view by the window that ends with a pane, whose counts have
// all arrived, and publishes the changes.
func (d *Detector) closePane(v *view, pane int64) {
	r, end := v.watch, v.Start(pane+1)
	var change rules.Change
	if v.judgesAtEnd() && pane <= v.busy {
		change.Hot = d.compareAll(v, pane)
	}
	for _, w := range r.hot {
		for _, t := range v.thresholds {
			if w.marks[t.number].hot {
				d.coolDown(t, w, pane)
			}
		}
	}
	change.Cool = r.takeCooled(pane, end)
	if r.overlaps {
		d.attribute(v, pane, &change)
	}
	d.account.closePane(v, pane)
	d.publish(change)
}

// compareAll judges the keys of a view by the thresholds that compare keys with each other, or
// with their past, in the window that ends with a pane. It returns the keys that become hot and
// are listed.
func (d *Detector) compareAll(v *view, pane int64) (hot []rules.Hot) {
	var passed []int32
	for _, t := range v.thresholds {
		if t.Kind == rules.Top {
			t.rank(pane)
			t.earlier = nil
		}
	}
	v.Each(0, func(i int32) {
		if v.Sum(i, pane) >= v.least {
			passed = append(passed, i)
		}
	})
	slices.SortFunc(passed, func(a, b int32) int { return bytes.Compare(v.Name(a), v.Name(b)) })
	end := v.Start(pane + 1)
	for _, i := range passed {
		k := candidate{w: v.watched(i), text: v.Name(i), hash: v.Hash(i), when: end}
		if k.w == nil {
			k.w = v.watch.keys[string(k.text)]
		}
		for _, t := range v.thresholds {
			if !t.isJudgedAtEnd() || k.w.isHeldBy(t) {
				continue
			}
			low, _ := v.Bounds(i, pane)
			k.standing = standing{i, low, pane}
			if d.judge(t, &k) && k.w.listed {
				hot = append(hot, k.w.describe(pane))
			}
		}
	}
	return hot
}
