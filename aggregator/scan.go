package aggregator

import (
	"cmp"
	"slices"
	"time"
)

// watchSuspects looks for suspects among all keys, and publishes the suspects, if either is
// due.
func (d *Detector) watchSuspects(now time.Time) {
	s := &d.suspects
	since := now.Sub(s.scanned)
	switch {
	case since >= scanEvery || since < 0:
		s.scanned = now
		d.scanSuspects(now)
	case !s.added || now.Sub(s.published) < tellEvery:
		return
	}
	if len(s.list) == 0 && !s.hadSome {
		return
	}
	s.published, s.added, s.hadSome = now, false, len(s.list) > 0
	d.publisher.Suspects(s.part, s.describe())
}

// suspicion is a key that a scan found.
type suspicion struct {
	*threshold
	entry    int32    // entry in the threshold's view, or -1
	w        *watched // nil if the key is not watched yet
	low      int64
	nearness float64
}

// scanSuspects replaces the suspects by those among all keys that have a text, and computes how
// much can be hidden of the other keys.
func (d *Detector) scanSuspects(now time.Time) {
	s := &d.suspects
	var found []suspicion
	for _, r := range d.watches {
		for _, v := range r.views {
			bound := v.Floor()
			if bound > 0 || v.bound > 0 {
				v.hide(bound)
			}
			if bound > 0 || len(s.list) > 0 {
				found = v.appendSuspects(found, s.share)
			}
		}
	}
	for _, w := range s.list {
		t := w.suspect
		if v := t.view; w.entries[v.number] < 0 && v.AtMost(w.hash, []byte(w.text), v.Now()) >= t.unseen(w.exception) {
			low, _ := v.Span(w.hash, []byte(w.text), v.Now(), int64(v.Panes))
			found = append(found, suspicion{t, -1, w, low, t.nearness(low, w.exception)})
		}
	}
	if len(found) == 0 && len(s.list) == 0 {
		return
	}
	found = nearest(found, s.share)
	d.replaceSuspects(found, now)
	d.overlookOthers(found)
}

// appendSuspects appends the suspects among the keys of v.
func (v *view) appendSuspects(found []suspicion, share int) []suspicion {
	v.Each(v.level, func(i int32) {
		w := v.watched(i)
		if w != nil && w.hotMarks > 0 {
			return
		}
		low, _ := v.Bounds(i, v.Now())
		maximum := v.AtMost(v.Hash(i), v.Name(i), v.Now())
		if maximum < v.least {
			return
		}
		for _, t := range v.thresholds {
			x := v.watch.exceptionOf(w, v.Name(i))
			if maximum >= t.needs(x, i, v.Name(i), v.Now()).maybe {
				found = append(found, suspicion{t, i, w, low, t.nearness(low, x)})
				break
			}
		}
		if len(found) >= 4*maxSuspects {
			found = nearest(found, share)
		}
	})
	return found
}

// nearest returns the suspicions to keep, those nearest to their threshold first. Each rule
// gets its share before any gets more.
func nearest(found []suspicion, share int) []suspicion {
	slices.SortStableFunc(found, func(a, b suspicion) int { return cmp.Compare(b.nearness, a.nearness) })
	if len(found) <= maxSuspects {
		return found
	}
	taken := make(map[*ruleWatch]int)
	var due, others []suspicion
	for _, f := range found {
		if r := f.view.watch; taken[r] < share {
			taken[r]++
			due = append(due, f)
		} else {
			others = append(others, f)
		}
	}
	return append(due, others[:maxSuspects-len(due)]...)
}

// replaceSuspects replaces the suspects by the keys found.
func (d *Detector) replaceSuspects(found []suspicion, now time.Time) {
	before := d.suspects.clear()
	for _, f := range found {
		k := candidate{standing: standing{entry: f.entry}, w: f.w, when: now}
		if f.entry >= 0 {
			k.text, k.hash = f.view.Name(f.entry), f.view.Hash(f.entry)
		}
		if k.w == nil {
			k.w = f.view.watch.keys[string(k.text)]
		}
		if k.w != nil && (f.entry < 0 || !k.w.suspected.IsZero()) {
			k.when = k.w.suspected
		}
		d.addSuspect(f.threshold, &k)
	}
	d.suspects.added = false // watchSuspects publishes all of them now
	for _, w := range before {
		if w.suspect == nil {
			w.suspected = time.Time{}
			w.release()
		}
	}
}

// overlookOthers restricts rules without room for further suspects to keys that count at least
// as much as the lowest suspect.
func (d *Detector) overlookOthers(found []suspicion) {
	lowest := make([]int64, len(d.rules))
	for _, f := range found {
		if l := &lowest[f.view.watch.number]; *l == 0 || f.low < *l {
			*l = f.low
		}
	}
	for _, r := range d.watches {
		if !d.suspects.full(r) {
			continue
		}
		for _, v := range r.views {
			v.overlook(lowest[r.number])
		}
	}
}
