package aggregator

import (
	"time"

	"github.com/hotparam/hotparam/aggregator/internal/window"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/ring"
	"github.com/hotparam/hotparam/internal/wire"
)

// AddHiddenCounts implements [decode.Handler].
func (d *Detector) AddHiddenCounts(when time.Time, n int64) {
	for v := range d.views() {
		for w := range v.windows() {
			w.Conceal(w.Index(when), n)
		}
		d.suspects.setHidden(v, v.bound+n)
	}
}

// SetHeldBackBound implements [decode.Handler].
func (d *Detector) SetHeldBackBound(rule int, bound, outsideGroups int64) {
	r := d.rules[rule]
	if r == nil {
		return
	}
	for _, v := range r.views {
		grown := max(0, bound-v.Held())
		v.SetHeld(bound, outsideGroups)
		if v.history != nil {
			v.history.SetHeld(bound, 0) // it also holds for the windows of the baseline
		}
		d.suspects.setHidden(v, v.bound+grown)
	}
}

// AddHeldBack implements [decode.Handler].
func (d *Detector) AddHeldBack(x decode.HeldBack) {
	r := d.rules[x.Rule]
	if r == nil || x.When.Before(r.from) {
		return
	}
	for _, v := range r.views {
		if v.groups == nil {
			continue
		}
		pane := v.PaneOf(x.When)
		if base.IsAgain(x.Group) {
			v.groups.TakeOff(x.Group, pane, x.N)
		} else {
			v.groups.AddNamed(x.Group, pane, x.N)
		}
	}
}

// RecordLoss implements [decode.Handler].
func (d *Detector) RecordLoss(when time.Time) {
	for v := range d.views() {
		v.MarkLost(v.Index(when))
	}
}

// ReduceLoss implements [decode.Handler].
func (d *Detector) ReduceLoss(newest time.Time) {
	for v := range d.views() {
		if newest.IsZero() {
			v.LimitLoss(ring.Never)
		} else {
			v.LimitLoss(v.Index(newest))
		}
	}
}

// RecordGap implements [decode.Handler].
func (d *Detector) RecordGap(g decode.Gap) { d.missing.Add(g) }

// ExcludeFromGap implements [decode.Handler].
func (d *Detector) ExcludeFromGap(gap uint64, rule int, hash uint64, known bool) {
	if d.rules[rule] != nil {
		d.missing.ExcludeKey(gap, window.MissingKey{Hash: hash, Rule: rule}, known)
	}
}

// AddHealedCount implements [decode.Handler].
func (d *Detector) AddHealedCount(c decode.Count, until time.Time) {
	r := d.rules[c.Rule]
	if r == nil {
		return
	}
	kept := true
	for _, v := range r.views {
		kept = kept && v.Keeps(c.When)
	}
	key := window.MissingKey{Hash: c.Hash, Rule: c.Rule}
	switch {
	case !kept: // until then it may belong to a kept pane
		d.missing.RecordLack(key, c.When, until, c.N)
	case d.missing.Heal(key, c.When, until, c.N):
		d.count(&c)
	}
}

// MoveHealedCount implements [decode.Handler].
func (d *Detector) MoveHealedCount(c decode.Count, from, to time.Time) {
	r := d.rules[c.Rule]
	if r == nil {
		return
	}
	key := window.MissingKey{Hash: c.Hash, Rule: c.Rule}
	// Several packets of a gap may have had counts of the key, and not all of these could be
	// placed. Which packet had which is not known, so the counts that were not placed come
	// first.
	lacking, placed := min(c.N, d.missing.CountHealed(key, from, to, false)), c
	placed.N = min(c.N-lacking, d.missing.CountHealed(key, from, to, true))
	for _, v := range r.views {
		if !v.canSubtract(&placed, from) {
			placed.N = 0 // the counts are in a cell by now, and stay there
		}
	}
	if placed.N > 0 {
		for _, v := range r.views {
			v.subtract(&placed, from)
		}
	}
	d.missing.Unheal(key, from, to, lacking, false)
	d.missing.Unheal(key, from, to, placed.N, true)
	if c.N = lacking + placed.N; c.N > 0 {
		d.count(&c)
	}
}

// A decoder finds this interface by a type assertion, which no compiler checks.
var _, _ decode.OriginHandler = (*Detector)(nil), (*feed)(nil)

// AddOrigin implements [decode.OriginHandler]. It ignores origins of keys that are not hot.
func (d *Detector) AddOrigin(o decode.OriginCount) {
	if o.Kind == wire.KeyUsage || o.Kind == wire.RouteUsage {
		d.costs.add(&o, d.now)
		return
	}
	r := d.rules[o.Rule]
	if r == nil {
		return
	}
	w := r.keys[string(o.Text)]
	if w == nil || w.holder == nil {
		return
	}
	target := &w.callers
	if o.Kind == wire.Route {
		target = &w.routes
	}
	if *target == nil {
		span := max(w.holder.view.Pane*time.Duration(w.holder.view.Panes), published.MinOriginSpan)
		*target = newOrigins(span, o.When)
	}
	(*target).add(string(o.Name), o.When, o.N)
}
