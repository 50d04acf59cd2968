package middleware

import (
	"cmp"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// Admissions are counted over the last ten seconds. Each second has a sample of the total.
const (
	admittedFor   = 10 * time.Second
	admittedEvery = time.Second - 100*time.Millisecond // calls a second apart may come a little early
)

// Admitted returns this instance's admissions of published hot keys in the last ten seconds, or
// since a key became hot. It returns the keys with the highest numbers, at most limit of them,
// and reports whether there are more. A request counts if the key's limit admits it; requests that
// the limit was not asked about do not count. With count: bytes, ms or units its cost counts. With
// on_hot there are also the numbers of requests by how they were answered. The outcomes of all of a
// key's requests since it became hot are reported as totals, so that a later report makes up for one
// that was lost. If there are more keys, half of the places are for those with the most outcomes that were not
// reported yet, or that were reported the longest time ago. Admitted is called about once a second.
func (g *Guard) Admitted(limit int) (all []published.Admitted, more bool) {
	g.sampling.Lock()
	defer g.sampling.Unlock()
	now, ruleset := time.Now(), g.rules.Load()
	var states []*hotState
	for _, h := range g.hot.All() {
		state, r := g.stateOf(h.Key), ruleset.byID(h.Rule)
		if state == nil || r == nil || !r.limits() && r.shared == nil {
			continue
		}
		total := state.passed.Load() - state.exempt.Load()
		if r.Count != rules.Requests {
			total = state.charged.Load()
		}
		a := state.sampleAdmitted(now, total)
		if (a.N > 0 || a.Outcomes != published.Outcomes{}) && a.Span > 0 && !h.Local {
			all, states = append(all, a), append(states, state)
		}
	}
	return g.chooseReported(all, states, limit), len(all) > limit
}

// chooseReported returns at most limit of the reports of states, those with the highest numbers
// first.
func (g *Guard) chooseReported(all []published.Admitted, states []*hotState, limit int) []published.Admitted {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	byNumber := func(i, j int) int { return all[i].Compare(all[j]) }
	slices.SortFunc(order, byNumber)
	if len(all) > limit {
		due := func(i int) int64 {
			return (1 + all[i].Outcomes.Requests() - states[i].told) * (1 + g.reports - states[i].reported)
		}
		slices.SortStableFunc(order[limit-limit/2:], func(i, j int) int { return cmp.Compare(due(j), due(i)) })
		order = order[:limit]
		slices.SortFunc(order, byNumber)
	}
	g.reports++
	chosen := make([]published.Admitted, len(order))
	for place, i := range order {
		chosen[place] = all[i]
		states[i].reported, states[i].told = g.reports, all[i].Outcomes.Requests()
	}
	return chosen
}

// sampleAdmitted returns the numbers of the last seconds and their time, and keeps a sample of the
// totals. The first numbers of a new state are since it was made. A state from an earlier time
// as a hot key, whose samples are all too old, begins with its present totals. The caller holds the
// guard's sampling.
func (h *hotState) sampleAdmitted(now time.Time, total int64) published.Admitted {
	old := now.Add(-admittedFor - admittedEvery)
	onHot, ever, hot := h.onHot(), h.outcomesEver(), h.heat.Load()
	s := slices.DeleteFunc(h.admitted, func(s admittedSample) bool { return s.when.Before(old) })
	if len(s) == 0 {
		if s == nil && !h.made.Before(old) { // never sampled, and new
			s = append(s, admittedSample{when: h.made})
		} else {
			s = append(s, admittedSample{now, total, onHot, ever})
		}
	}
	first := &s[0]
	a := published.Admitted{
		ID: h.id, N: max(0, total-first.total), Span: now.Sub(first.when),
		OnHot:  published.OnHotCounts{Stored: onHot.Stored - first.onHot.Stored, Joined: onHot.Joined - first.onHot.Joined, Alone: onHot.Alone - first.onHot.Alone},
		Lately: ever.Minus(first.ever), Outcomes: ever.Minus(hot.before), Since: hot.since,
	}
	if a.OnHot.Alone > 0 {
		a.OnHot.AloneFor = onHot.AloneFor
	}
	if now.Sub(s[len(s)-1].when) >= admittedEvery {
		s = append(s, admittedSample{now, total, onHot, ever})
	}
	h.admitted = s
	return a
}
