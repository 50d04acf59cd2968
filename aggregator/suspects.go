package aggregator

import (
	"cmp"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/published"
)

// suspects are the keys that may be hot: their reported counts are below a threshold, but their
// reported and hidden counts together are not. Lost packets are not considered, or all keys
// would be suspect. Suspects are found on every count, and once a second among all keys.
type suspects struct {
	part      int
	share     int // part of maxSuspects that each rule is guaranteed
	list      []*watched
	added     bool // whether keys were added since the last publication
	hadSome   bool // whether the last publication had keys
	published time.Time
	scanned   time.Time
}

const (
	// maxSuspects bounds the list; between two scans it may have twice as many. Each rule is
	// guaranteed an equal part of it, and the rest is for the keys nearest to their
	// threshold. Counts alone would not compare, as bytes are many and requests few.
	maxSuspects = 1000
	// scanEvery is the interval in which all keys are scanned. tellEvery is the least time
	// between publications when suspects are added.
	scanEvery = time.Second
	tellEvery = 100 * time.Millisecond
)

// full reports whether there is no room for another suspect of a rule.
func (s *suspects) full(r *ruleWatch) bool {
	return len(s.list) >= maxSuspects && r.suspects >= s.share
}

// takes reports whether a key of a rule that is not on the list has room there. w may be nil.
func (s *suspects) takes(r *ruleWatch, w *watched) bool {
	return (w == nil || w.suspect == nil) && !s.full(r)
}

// add puts w on the list, as it may have passed t.
func (s *suspects) add(w *watched, t *threshold, since time.Time) {
	w.suspect, w.suspected = t, since
	w.rule.suspects++
	s.list = append(s.list, w)
	s.added = true
}

// setHidden sets the upper bound of the hidden counts of a view's keys.
func (s *suspects) setHidden(v *view, bound int64) {
	if s.full(v.watch) {
		v.bound = bound
		return
	}
	v.setHidden(bound)
}

// clear empties the list and returns its previous keys.
func (s *suspects) clear() (before []*watched) {
	before, s.list = s.list, nil
	for _, w := range before {
		w.suspect = nil
		w.rule.suspects--
	}
	return before
}

// drop removes a key from the list.
func (s *suspects) drop(w *watched) {
	if w.suspect != nil {
		w.suspect = nil
		w.rule.suspects--
		i := slices.Index(s.list, w)
		s.list = slices.Delete(s.list, i, i+1)
	}
}

// describe returns the suspects, those nearest to their threshold first.
func (s *suspects) describe() []published.Hot {
	described := make([]published.Hot, 0, len(s.list))
	for _, w := range s.list {
		t := w.suspect
		h := w.newHot()
		h.Low, h.High = t.view.Span(w.hash, []byte(w.text), t.view.Now(), int64(t.view.Panes))
		h.Rate = float64(h.Low) / t.Rate.Per.Seconds()
		h.Ratio = t.nearness(h.Low, w.exception)
		if i := w.entries[t.view.number]; i >= 0 {
			t.view.SetSeen(&h, i, t.view.Now())
		}
		h.Since = w.suspected
		described = append(described, h)
	}
	slices.SortFunc(described, func(a, b published.Hot) int {
		return cmp.Or(cmp.Compare(b.Ratio, a.Ratio), a.Key.Compare(b.Key))
	})
	return described
}

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
	d.cfg.Publisher.Suspects(s.part, s.describe())
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
				v.setHidden(bound)
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
		k := candidate{windowState: windowState{entry: f.entry}, w: f.w, when: now}
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
			v.stopSuspecting(lowest[r.number])
		}
	}
}
