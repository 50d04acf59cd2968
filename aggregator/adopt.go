package aggregator

import (
	"time"

	"github.com/hotparam/hotparam"
)

// Adopt makes keys hot that another detector found. They stay hot until this detector's own
// counts say otherwise, by all thresholds of their rule, as it is not known which one they
// passed. What was counted before now is unknown unless it is still to arrive: call
// [Detector.Lost] with how far back that is. Adopt returns the keys that it refuses: of a
// rule that does not exist or is of another part, or with a value that is allowed.
func (d *Detector) Adopt(hot []hotparam.Hot, now time.Time) (refused []hotparam.Hot) {
	for _, h := range hot {
		r := d.rule(h.Rule)
		if r == nil || !d.adopt(r, &h, now) {
			refused = append(refused, h)
		}
	}
	return refused
}

func (d *Detector) rule(id string) *ruleWatch {
	for _, r := range d.watches {
		if r.rule.ID == id {
			return r
		}
	}
	return nil
}

func (d *Detector) adopt(r *ruleWatch, h *hotparam.Hot, now time.Time) bool {
	w := r.keys[h.Text]
	if w == nil {
		w = r.newWatched([]byte(h.Text), hotparam.Hash([]byte(h.Text)))
	}
	if w.exception != nil && w.exception.Action == hotparam.Allow {
		return false
	}
	first := w.hots == 0
	for _, v := range r.views {
		pane := v.PaneOf(now)
		if !w.enrol(v, pane) {
			d.unnamed++
			continue
		}
		for _, t := range v.thresholds {
			if w.marks[t.number].hot {
				continue
			}
			w.setMark(t, mark{hot: true, over: v.Start(pane + 1), hold: h.Since.Add(t.Hold)})
			if w.by == nil {
				w.by = t
			}
		}
	}
	if w.hots == 0 {
		return false
	}
	if first {
		w.since, w.listed, w.meter = h.Since, true, newMeter(d.rateSpan, now)
		w.usual, w.spared, w.hotSince = h.Usual, h.Usual && h.Spared, h.Since // and usual since long ago
		w.published = listing{true, w.usual, w.spared}
		d.suspects.drop(w)
		r.hot = append(r.hot, w)
	} else if h.Since.Before(w.since) {
		w.since = h.Since
	}
	return true
}

// enrol gives a key an entry with its text in a view, if there is room.
func (w *watched) enrol(v *view, pane int64) bool {
	if w.at[v.number] >= 0 {
		return true
	}
	text := []byte(w.text)
	i, _, _ := v.Add(w.hash, text, pane, 0)
	if i < 0 {
		return false
	}
	v.GiveName(i, text, v.least)
	return w.pin(v, i)
}
