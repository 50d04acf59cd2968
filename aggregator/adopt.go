package aggregator

import (
	"slices"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/ring"
	"github.com/hotparam/hotparam/rules"
)

// Adopt makes keys hot that another detector found. They stay hot until this detector's own
// counts cool them, by the thresholds that held them hot there or, if those are not known, by
// every threshold of their rule. Counts from before now are unknown unless they are still to
// arrive: call [Detector.RecordLoss] with the time up to which they are unknown, or set
// [DetectorConfig.Start]. Adopt returns the keys that it refuses: those of a rule that does not
// exist or belongs to another part, those with a value that is allowed, and those for which there
// is no room.
func (d *Detector) Adopt(hot []published.Hot, now time.Time) (refused []published.Hot) {
	for _, h := range hot {
		r := d.rule(h.Rule)
		if !d.costs.adopt(&h, now) && (r == nil || !d.adopt(r, &h, now)) {
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

func (d *Detector) adopt(r *ruleWatch, h *published.Hot, now time.Time) bool {
	w := r.keys[h.Text]
	if w == nil {
		w = r.newWatched([]byte(h.Text), rules.Hash([]byte(h.Text)))
	}
	if w.exception != nil && w.exception.Action == rules.Allow {
		return false
	}
	first, holders := w.hotMarks == 0, r.holders(h)
	for _, v := range r.views {
		pane := v.PaneOf(now)
		if !w.addEntry(v, pane) {
			d.noRoom++
			continue
		}
		for _, t := range v.thresholds {
			if !slices.Contains(holders, t) {
				continue
			}
			if m := &w.marks[t.number]; m.hot { // it became hot by later counts, or is resumed
				m.hold = base.Earlier(m.hold, h.Since.Add(t.Hold))
				continue
			}
			m := thresholdState{hot: true, adoptedRatio: h.Ratio, over: v.Start(v.PaneOf(h.Since) + 1), hold: h.Since.Add(t.Hold)}
			if m.saved = t.findSaved(h.Text); m.saved == nil {
				m.below = w.belowSince(t, m.over)
			}
			w.setMark(t, m)
		}
	}
	if w.hotMarks == 0 {
		return false
	}
	if first {
		w.since, w.listed, w.meter, w.skews = h.Since, true, newMeter(d.cfg.RateSpan, now), skews{}
		w.usual, w.spared, w.hotSince = h.Usual, h.Usual && h.Spared, h.Since // the zero usualSince means long before
		w.published = listing{true, w.usual, w.spared}
		d.suspects.drop(w)
		r.hot = append(r.hot, w)
	} else if h.Since.Before(w.since) {
		w.since = h.Since
	}
	return true
}

// holders returns the thresholds of r that hold a published key hot: those with the kinds and
// windows that it was published with. If there is none like these, it returns all.
func (r *ruleWatch) holders(h *published.Hot) (all []*threshold) {
	if h.Cause.Unit == r.rule.Count {
		names := append(strings.Split(h.Also, ","), holderName(h.Cause.Kind, h.Cause.Over, h.Cause.Rate.Per))
		for _, t := range r.thresholds {
			if slices.Contains(names, t.holderName()) {
				all = append(all, t)
			}
		}
	}
	if len(all) == 0 {
		return r.thresholds
	}
	return all
}

// also returns the value of [published.Hot.Also] for a hot key.
func (w *watched) also() string {
	var names []string
	for _, t := range w.rule.thresholds {
		if t != w.holder && w.marks[t.number].hot {
			names = append(names, t.holderName())
		}
	}
	return strings.Join(names, ",")
}

// holderName returns a threshold's kind, past and window, which remain when its counts change.
func (t *threshold) holderName() string { return holderName(t.Kind, t.Over, t.Rate.Per) }

func holderName(kind rules.ThresholdKind, past rules.Over, window time.Duration) string {
	name := kind.String() + "/" + window.String()
	if past != rules.OverRecent {
		name += " over " + past.String()
	}
	return name
}

// belowSince returns the end of the first window of the current run of windows known to be
// below the exit. The run ends with the newest window that has ended. belowSince returns the
// zero time if that one is not below the exit. It looks back as far as the cool-down and as
// windows are kept whole, and not beyond over.
func (w *watched) belowSince(t *threshold, over time.Time) (below time.Time) {
	v := t.view
	for pane := v.closed; pane != ring.Never && pane >= v.Now()-v.Kept()+int64(v.Panes); pane-- {
		end := v.Start(pane + 1)
		_, high := w.bounds(v, pane)
		if end.Before(over) || high == published.Unknown || high >= w.needs(t, pane).exit {
			break
		}
		if below = end; v.Start(v.closed+1).Sub(end) >= t.CoolDown || t.Kind == rules.Top { // ranks are known for one window only
			break
		}
	}
	return below
}

// addEntry gives the key an entry with its text in v, and pins it. It returns false if there is no
// room.
func (w *watched) addEntry(v *view, pane int64) bool {
	if w.entries[v.number] >= 0 {
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
