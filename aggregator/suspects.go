package aggregator

import (
	"cmp"
	"slices"
	"time"

	"github.com/hotparam/hotparam/rules"
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

// hide sets the bound of the hidden counts of a view's keys.
func (s *suspects) hide(v *view, bound int64) {
	if s.full(v.watch) {
		v.bound = bound
		return
	}
	v.hide(bound)
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
		at := slices.Index(s.list, w)
		s.list = slices.Delete(s.list, at, at+1)
	}
}

// describe returns the suspects, those nearest to their threshold first.
func (s *suspects) describe() []rules.Hot {
	told := make([]rules.Hot, 0, len(s.list))
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
		told = append(told, h)
	}
	slices.SortFunc(told, func(a, b rules.Hot) int {
		return cmp.Or(cmp.Compare(b.Ratio, a.Ratio), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Text, b.Text))
	})
	return told
}
