package blame

import (
	"math"
	"slices"
)

const (
	commitAfter  = 1.0  // seconds; usage counts as usual only if that long was calm
	learnTime    = 10.0 // seconds of calm before the first key is blamed
	rateHalfLife = 60.0 // seconds
	costSamples  = 200.0
	fewSamples   = 10.0 // of the level that is unlearned
	relearnAfter = 20.0 // seconds of slowness without anybody to blame
)

// usual learns the usual costs, in calm times alone: the costs of a key that slows others down must
// not become usual while it is judged.
type usual struct {
	seconds float64 // span of the usual rates, decayed
	fresh   float64 // seconds since the last commit
	blamed  bool    // within fresh a key was suspected or tried
	served  bool    // within fresh a request of a held key ran
	calm    bool    // nothing was slow within fresh
	slow    float64 // seconds of overload without a suspect
}

func (u *usual) learned() bool { return u.seconds >= learnTime/2 }

// learn adds the step. When the others have been slow for relearnAfter and no key is to blame, their
// present time becomes usual: the back end or the program has changed. Faster times are usual at once.
func (u *usual) learn(j *Judge, blamed bool, seconds float64) {
	t, p := &j.table, &j.present
	if u.fresh == 0 {
		u.calm, u.blamed, u.served = true, false, false
	}
	u.fresh += seconds
	u.blamed = u.blamed || blamed
	u.served = u.served || j.running() > 0
	u.calm = u.calm && !p.flags[0] && !p.flags[1]
	for _, s := range t.subjects {
		s.fresh.Add(&s.step)
	}
	if p.overloaded() && !blamed {
		u.slow += seconds
	} else if !p.flags[0] || blamed {
		u.slow = 0
	}
	if u.fresh < commitAfter {
		return
	}
	again := u.slow > relearnAfter
	if again {
		u.slow = 0
		t.shift(&j.evidence, p)
	}
	usual := u.calm && !u.blamed || !u.learned() && !u.blamed || again
	j.tail.commit(usual && !u.served, u.fresh)
	if usual {
		u.commit(t, again || p.recent(5) < 0.7)
		p.level += (min(max(0.8, p.smooth), 1.2) - p.level) * max(0.05, u.fresh/u.seconds)
	}
	u.fresh = 0
	for _, s := range t.subjects {
		s.fresh = Usage{}
	}
}

// commit adds the fresh usage to the usual costs. With unlearn, it counts more than the past.
func (u *usual) commit(t *table, unlearn bool) {
	keep := math.Exp2(-u.fresh / rateHalfLife)
	if unlearn {
		keep = math.Exp2(-u.fresh / 10)
	}
	before := u.seconds * keep
	u.seconds = before + u.fresh
	for _, s := range t.subjects {
		if s.held {
			continue
		}
		s.rate = (s.rate*before + float64(s.fresh.Ended)) / u.seconds
		took, ended := s.fresh.Took.Seconds(), float64(s.fresh.Ended)
		if before > learnTime && !unlearn && took > dearFactor*ended*s.expected(t.dearest[s.route]) {
			// What does not hurt yet may do so soon, so it becomes usual slowly.
			took, ended = took*u.fresh/rateHalfLife, ended*u.fresh/rateHalfLife
		}
		s.costTime += took
		s.costs += ended
		limit := costSamples
		if unlearn {
			limit = fewSamples
		}
		if s.costs > limit {
			s.costTime *= limit / s.costs
			s.costs = limit
		}
	}
	u.findDearest(t)
}

// shift makes usual what each key should take now. Without it rare keys would be compared with
// their own past, but with the present of the frequent ones.
func (t *table) shift(e *evidence, p *present) {
	for _, s := range t.subjects {
		if each, known := s.each(); known && !s.held {
			s.costTime = s.costs * (e.fit(each) + (max(1, p.recent(5))-1)*e.typical)
		}
	}
}

func (u *usual) findDearest(t *table) {
	costs := map[string][]float64{}
	for _, s := range t.subjects {
		if each, known := s.each(); known && s.isKey() && !s.held {
			costs[s.route] = append(costs[s.route], each)
		}
	}
	for route, c := range costs {
		slices.Sort(c)
		t.dearest[route] = c[max(0, min(len(c)*99/100, len(c)-2))]
	}
}

func decay(seconds float64) float64 { return math.Exp2(-seconds / halfLife) }
