package aggregator

import (
	"cmp"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/ring"
	"github.com/hotparam/hotparam/rules"
)

// Tops are the keys of a rule that count most in one second. Of a rule whose panes are longer, they
// are those of a pane, and the second is the one in which it ends.
type Tops struct {
	Rule   string
	Unit   rules.Unit
	Second int64 // Unix seconds of its beginning
	Span   int64 // length of the pane in whole seconds, at least 1
	Keys   []Top
	// RestLow and RestHigh bound the counts that are not among those of Keys. Other is the most that
	// another key can count. RestHigh and Other may be [published.Unknown].
	RestLow, RestHigh, Other int64
}

// Top is one key of [Tops].
type Top struct {
	Text      string
	Low, High int64 // High may be [published.Unknown]
	Hot       bool
}

const (
	// maxTops is the number of keys of a rule that are listed by their counts, and maxHotTops the
	// number with hot keys, which are listed whatever they count.
	maxTops, maxHotTops = 50, 1000
	// Texts are given from a count on at which about that many keys have one.
	fewNamed, manyNamed = 2 * maxTops, 10 * maxTops
	// maxTopSeconds is the number of seconds that are listed after a pause.
	maxTopSeconds = 3
)

// topState is what a rule keeps to list its keys.
type topState struct {
	view         *view
	second       int64 // newest second that was listed
	list, before int64 // count of ListFrom, now and until a second ago
	found        []topFound
}

type topFound struct {
	entry int32
	n     int64
	hot   bool
}

// recordTops reports the seconds that have ended since the last call. Only keys with a text are
// compared: the others count less.
func (d *Detector) recordTops() {
	if d.cfg.OnTops == nil {
		return
	}
	var all []Tops
	for _, r := range d.watches {
		all = r.appendTops(all)
	}
	if all = d.costs.appendTops(all, d.now.Unix()-1); len(all) > 0 { // the usage of the last second
		d.cfg.OnTops(all)
	}
}

// appendTops appends the seconds of a rule that have ended, by its shortest window.
func (r *ruleWatch) appendTops(all []Tops) []Tops {
	s, v := &r.tops, r.views[0]
	for _, other := range r.views {
		if other.Pane < v.Pane {
			v = other
		}
	}
	if v.closed == ring.Never {
		return all
	}
	if s.view != v {
		*s = topState{view: v, second: secondOf(v, v.Now()), list: max(1, v.least/16), before: v.least, found: s.found}
		v.ListFrom(s.list)
	}
	over := secondOf(v, v.closed+1) - 1            // newest second of which all panes are closed
	if s.second > over+2*maxTopSeconds+spanOf(v) { // the clock was set back
		s.second = over
	}
	for second := max(s.second, over-maxTopSeconds-spanOf(v)) + 1; second <= over; second++ {
		first, last := v.Index(time.Unix(second, 0)), v.Index(time.Unix(second+1, 0))-1
		if last >= first && first > v.Now()-v.Kept() {
			all = append(all, r.topsOf(first, last, second))
		}
	}
	s.second = max(s.second, over)
	s.before = s.list
	switch named := v.Named(); {
	case named > manyNamed || v.LacksRoomToList():
		s.list = min(s.list*3/2+1, v.least)
	case named < fewNamed:
		s.list -= (s.list + 3) / 4
	}
	s.list = max(1, s.list)
	v.ListFrom(s.list)
	return all
}

// secondOf returns the second in which a pane ends.
func secondOf(v *view, pane int64) int64 { return v.Start(pane + 1).Add(-1).Unix() }

// spanOf returns the length of a pane in whole seconds.
func spanOf(v *view) int64 { return int64((v.Pane + time.Second - 1) / time.Second) }

// topsOf returns the keys that count most in some panes.
func (r *ruleWatch) topsOf(first, last, second int64) Tops {
	s, v := &r.tops, r.tops.view
	t := Tops{Rule: r.rule.ID, Unit: r.rule.Count, Second: second, Span: spanOf(v)}
	s.found = s.found[:0]
	v.EachNamed(first, last, func(i int32, n int64) {
		w := v.watched(i)
		s.found = append(s.found, topFound{i, n, w != nil && w.hotMarks > 0})
	})
	slices.SortFunc(s.found, func(a, b topFound) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.entry, b.entry)) })
	sum, rest := int64(0), int64(0) // rest is the highest count of a key with a text that is not listed
	for i, f := range s.found {
		if i >= maxTops && (!f.hot || len(t.Keys) >= maxHotTops) {
			rest = max(rest, f.n)
			continue
		}
		text := v.Name(f.entry)
		low, high := v.Span(v.Hash(f.entry), text, last, last-first+1)
		t.Keys = append(t.Keys, Top{string(text), low, high, f.hot})
		sum += f.n
	}
	t.Other = v.Unnamed(first, last, max(s.list, s.before), v.bound)
	if rest > 0 && t.Other != published.Unknown {
		t.Other = max(t.Other, rest+v.bound)
	}
	t.RestLow, t.RestHigh = v.Rest(first, last, sum)
	if t.RestHigh != published.Unknown {
		t.Other = min(t.Other, t.RestHigh)
	}
	return t
}

// recordSpent adds the usage of an interval to that of the present second.
func (p *pool) recordSpent() {
	if p.spent == nil {
		p.spent = make(map[rules.Key]time.Duration)
	}
	for key, u := range p.keys {
		if _, known := p.spent[key]; known || len(p.spent) < maxPoolKeys {
			p.spent[key] += u.Busy
		}
	}
}

// appendTops appends the time that requests of keys took, by rules that find hot keys by their cost.
// Instances report the keys that take most, so nothing is known of the others.
func (c *costs) appendTops(all []Tops, second int64) []Tops {
	for _, p := range c.pools {
		byRule := make(map[string][]Top, len(p.rules))
		for rule := range p.rules {
			byRule[rule] = nil // a second without requests is known as well
		}
		for key, busy := range p.spent {
			if n := busy.Milliseconds(); n > 0 {
				byRule[key.Rule] = append(byRule[key.Rule], Top{key.Text, n, published.Unknown, p.hot[key] != nil})
			}
		}
		clear(p.spent)
		for rule, keys := range byRule {
			slices.SortFunc(keys, func(a, b Top) int { return cmp.Or(cmp.Compare(b.Low, a.Low), cmp.Compare(a.Text, b.Text)) })
			t := Tops{Rule: rule, Unit: rules.Millis, Second: second, Span: 1, RestHigh: published.Unknown, Other: published.Unknown}
			for i, k := range keys {
				if i < maxTops || k.Hot && len(t.Keys) < maxHotTops {
					t.Keys = append(t.Keys, k)
				} else {
					t.RestLow += k.Low
				}
			}
			all = append(all, t)
		}
	}
	return all
}
