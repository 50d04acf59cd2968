package aggregator

import (
	"cmp"
	"slices"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/aggregator/decode"
	"github.com/hotparam/hotparam/aggregator/internal/ring"
)

// suspects are the keys that may be hot and cannot be told yet: what was
// reported of them is below a threshold, what could be hidden besides is not;
// what was lost on the way counts for nothing, or all keys were suspect.
// They are looked for on every count, and once a second among all keys.
type suspects struct {
	part      int
	share     int // of maxSuspects, that each rule is guaranteed
	list      []*watched
	added     bool // since they were published
	hadSome   bool // when they were published
	published time.Time
	scanned   time.Time
}

const (
	// maxSuspects bounds them, but between two scans by twice as many: each rule is
	// guaranteed an equal part, and beyond that those nearest to their threshold are
	// kept. Counts alone would not do: bytes are many, and requests few.
	maxSuspects = 1000
	// scanEvery is how often all keys are looked at, tellEvery how soon after
	// the last time a new suspect is told.
	scanEvery = time.Second
	tellEvery = 100 * time.Millisecond
)

// full reports whether there is no room for another suspect of a rule.
func (s *suspects) full(r *ruleWatch) bool {
	return len(s.list) >= maxSuspects && r.suspects >= s.share
}

// hide notes how much can be hidden of the keys of a view.
func (s *suspects) hide(r *ruleWatch, v *view, bound int64) {
	if s.full(r) {
		v.bound = bound
		return
	}
	v.hide(bound)
}

// drop takes a key off the list.
func (s *suspects) drop(w *watched) {
	if w.suspect != nil {
		w.suspect = nil
		w.rule.suspects--
		at := slices.Index(s.list, w)
		s.list = slices.Delete(s.list, at, at+1)
	}
}

// overlooked looks at a key that has no entry. Its cell may hide a threshold.
func (d *Detector) overlooked(r *ruleWatch, v *view, c *decode.Count) {
	if d.suspects.full(r) {
		return
	}
	w := r.keys[string(c.Text)]
	most := v.AtMost(c.Hash, c.Text, v.Now())
	for _, t := range v.thresholds {
		if most >= t.unseen(r.exceptionOf(w, c.Text)) {
			d.suspect(r, t, w, -1, c.Text, c.Hash, c.When)
			return
		}
	}
}

// unseen is the least count at which a key that has no entry may be hot.
func (t *threshold) unseen(x *hotparam.Exception) int64 {
	if t.Kind != hotparam.Absolute {
		return t.Rate.N
	}
	return t.needs(x, -1, nil, ring.Never).maybe
}

// suspect notes that a key may have passed a threshold, and returns what is now
// known of it. i is its entry in the threshold's view, -1: none.
func (d *Detector) suspect(r *ruleWatch, t *threshold, w *watched, i int32, text []byte, hash uint64, when time.Time) *watched {
	if d.suspects.full(r) || w != nil && (w.hots > 0 || w.suspect != nil) {
		return w
	}
	fresh := w
	if fresh == nil {
		fresh = r.newWatched(text, hash)
	}
	if i < 0 {
		r.keys[fresh.text] = fresh
	} else if !r.pin(t.view, i, fresh) {
		return w
	}
	fresh.suspect, fresh.suspected = t, when
	r.suspects++
	d.suspects.list = append(d.suspects.list, fresh)
	d.suspects.added = true
	return fresh
}

// watchSuspects looks for suspects among all keys, and tells them, when it is
// time.
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

// describe returns the suspects, those nearest to their threshold first.
func (s *suspects) describe() []hotparam.Hot {
	told := make([]hotparam.Hot, 0, len(s.list))
	for _, w := range s.list {
		t := w.suspect
		h := w.rule.newHot(w)
		h.Low, h.High = t.view.Span(w.hash, []byte(w.text), t.view.Now(), int64(t.view.Panes))
		h.Rate = float64(h.Low) / t.Rate.Per.Seconds()
		h.Ratio = t.nearness(h.Low, w.exception)
		if i := w.at[t.view.number]; i >= 0 {
			t.view.SetSeen(&h, i, t.view.Now())
		}
		h.Since = w.suspected
		told = append(told, h)
	}
	slices.SortFunc(told, func(a, b hotparam.Hot) int {
		return cmp.Or(cmp.Compare(b.Ratio, a.Ratio), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Text, b.Text))
	})
	return told
}

// suspicion is a key that a scan found. i is its entry, -1: none.
type suspicion struct {
	*threshold
	i   int32
	w   *watched // nil: not known yet
	low int64

	nearness float64
}

// nearness returns a count divided by the least count at which a key can be hot, which
// stands for what is needed as long as that cannot be told.
func (t *threshold) nearness(low int64, x *hotparam.Exception) float64 {
	return float64(low) / float64(t.unseen(x))
}

// scanSuspects looks at all keys that have a text, and learns how much can be
// hidden of the others.
func (d *Detector) scanSuspects(now time.Time) {
	s := &d.suspects
	var found []suspicion
	for _, r := range d.rules {
		if r == nil {
			continue
		}
		for _, v := range r.views {
			bound := v.Floor()
			if bound > 0 || v.bound > 0 {
				v.hide(bound)
			}
			if bound > 0 || len(s.list) > 0 {
				found = r.scan(v, found, s.share)
			}
		}
	}
	for _, w := range s.list {
		t := w.suspect
		if v := t.view; w.at[v.number] < 0 && v.AtMost(w.hash, []byte(w.text), v.Now()) >= t.unseen(w.exception) {
			low, _ := v.Span(w.hash, []byte(w.text), v.Now(), int64(v.Panes))
			found = append(found, suspicion{t, -1, w, low, t.nearness(low, w.exception)})
		}
	}
	if len(found) == 0 && len(s.list) == 0 {
		return
	}
	found = nearest(found, s.share)
	before := s.list
	s.list = nil
	for _, w := range before {
		w.suspect = nil
		w.rule.suspects--
	}
	for _, f := range found {
		v, r, w := f.view, d.rules[f.ruleNumber], f.w
		if f.i < 0 {
			d.suspect(r, f.threshold, w, -1, nil, w.hash, w.suspected)
			continue
		}
		since := now
		if w == nil {
			w = r.keys[string(v.Name(f.i))]
		}
		if w != nil && !w.suspected.IsZero() {
			since = w.suspected
		}
		d.suspect(r, f.threshold, w, f.i, v.Name(f.i), v.Hash(f.i), since)
	}
	s.added = false // all are told now
	for _, w := range before {
		if w.suspect == nil {
			w.suspected = time.Time{}
			w.rule.release(w)
		}
	}
	lowest := make([]int64, len(d.rules)) // of each rule's suspects
	for _, f := range found {
		if l := &lowest[f.ruleNumber]; *l == 0 || f.low < *l {
			*l = f.low
		}
	}
	for i, r := range d.rules {
		if r == nil || !s.full(r) {
			continue
		}
		for _, v := range r.views {
			v.overlook(lowest[i])
		}
	}
}

// scan appends the suspects among the keys of a view.
func (r *ruleWatch) scan(v *view, found []suspicion, share int) []suspicion {
	v.Each(v.level, func(i int32) {
		w := v.watched(i)
		if w != nil && w.hots > 0 {
			return
		}
		low, _ := v.Bounds(i, v.Now())
		most := v.AtMost(v.Hash(i), v.Name(i), v.Now())
		if most < v.least {
			return
		}
		for _, t := range v.thresholds {
			x := r.exceptionOf(w, v.Name(i))
			if most >= t.needs(x, i, v.Name(i), v.Now()).maybe {
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

// nearest are those nearest to their threshold, no more than are kept: of each rule its
// share before any beyond that.
func nearest(found []suspicion, share int) []suspicion {
	slices.SortStableFunc(found, func(a, b suspicion) int { return cmp.Compare(b.nearness, a.nearness) })
	if len(found) <= maxSuspects {
		return found
	}
	of := make(map[int]int)
	var due, others []suspicion
	for _, f := range found {
		if of[f.ruleNumber]++; of[f.ruleNumber] <= share {
			due = append(due, f)
		} else {
			others = append(others, f)
		}
	}
	return append(due, others[:maxSuspects-len(due)]...)
}
