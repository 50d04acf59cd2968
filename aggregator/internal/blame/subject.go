package blame

import (
	"math"
	"slices"

	"github.com/hotparam/hotparam/rules"
)

const (
	maxSubjects  = 4096
	halfLife     = 2.0 // seconds, of sums of recent usage
	dearHalfLife = 6.0 // seconds
)

// subject is a key, or the unreported keys of a route together, which have a Key without a rule.
type subject struct {
	key   rules.Key
	route string
	step  Usage // usage in the current step

	// Sums of recent usage, in which each second counts as much as the two before it.
	ended, begun, demand float64
	own                  float64 // seconds beyond the wait that requests that ended with it had in common
	noise                float64 // seconds by which it may miss that by chance
	age                  float64 // seconds for which requests were in flight and none ended
	inFlight             float64 // requests in flight in the last step

	// Usual values: the time of a request, by up to costSamples of them, and requests a second.
	costTime, costs, rate float64
	fresh                 Usage // not yet part of it

	// Recent steps in which its requests clearly took more than is expected, and all others.
	dearSteps, otherSteps float64

	excess, score float64 // see evidence
	byArrivals    bool
	held          bool
	retry         backoff
}

func (s *subject) isKey() bool { return s.key.Rule != "" }

// accumulate adds the step to the sums. The wait is what requests of the step had in common.
func (s *subject) accumulate(seconds, wait, scatter float64) {
	u := &s.step
	if !s.isKey() { // a lost report of a route may leave less than nothing
		u.Busy, u.Took = max(0, u.Busy), max(0, u.Took)
		u.Begun, u.Ended, u.Refused = max(0, u.Begun), max(0, u.Ended), max(0, u.Refused)
	}
	keep := math.Exp2(-seconds / halfLife)
	s.ended = s.ended*keep + float64(u.Ended)
	s.begun = s.begun*keep + float64(u.Begun)
	s.demand = s.demand*keep + float64(u.Begun+u.Refused)
	s.own = s.own*keep + u.Took.Seconds() - float64(u.Ended)*wait
	s.noise = s.noise*keep + float64(u.Ended)*scatter
	s.inFlight = u.Busy.Seconds() / seconds
	s.age += seconds
	if u.Busy == 0 || u.Ended > 0 {
		s.age = 0
	}
}

// forget drops what its requests took until now, so that it is no evidence once they cost no more than
// usual, or have stopped.
func (s *subject) forget() { s.own, s.ended, s.noise, s.dearSteps, s.otherSteps = 0, 0, 0, 0, 0 }

// compare records whether the requests that ended in the step took more than three times the
// expected time, and longer than chance explains.
func (s *subject) compare(seconds, expected float64, p *present) {
	keep := math.Exp2(-seconds / dearHalfLife)
	s.dearSteps *= keep
	s.otherSteps *= keep
	switch {
	case expected == 0: // nothing is known yet
		return
	case s.step.Ended == 0:
		if s.inFlight > 0 && s.age > dearFactor*(expected+p.scatter)+2*max(p.lag, p.wait) {
			s.dearSteps += 0.5 * min(s.inFlight, 3)
		}
		return
	}
	if each := s.step.Took.Seconds() / float64(s.step.Ended); each > dearFactor*(expected+p.scatter)+p.wait {
		s.dearSteps++
	} else {
		s.otherSteps++
	}
}

// mayBeDear reports whether most of a key's recent requests were dear.
func (s *subject) mayBeDear() bool { return s.dearSteps >= 1 && s.otherSteps < s.dearSteps }

// isDear reports whether a key is dear again and again.
func (s *subject) isDear() bool { return s.dearSteps >= 1.8 && s.otherSteps < s.dearSteps/4 }

// each returns the usual time of a request, and false if too few were seen.
func (s *subject) each() (float64, bool) {
	if s.costs < 5 {
		return 0, false
	}
	return s.costTime / s.costs, true
}

// expected returns the highest time of a request that would not surprise. A key with few requests
// is taken for one of the dearest of its route.
func (s *subject) expected(dearest float64) float64 {
	if s.costs == 0 {
		return dearest
	}
	return dearest + (s.costTime/s.costs-dearest)*min(1, s.costs/20)
}

// table holds subjects, in the order in which they appeared.
type table struct {
	subjects []*subject
	index    map[rules.Key]*subject
	dearest  map[string]float64 // the time by route that 99 of 100 keys usually stay below
}

func newTable() table {
	return table{index: map[rules.Key]*subject{}, dearest: map[string]float64{}}
}

func (t *table) find(key rules.Key, route string) *subject {
	s := t.index[key]
	if s == nil {
		s = &subject{key: key, route: route}
		t.index[key] = s
		t.subjects = append(t.subjects, s)
	}
	return s
}

// evict drops the least used half of a full table's keys.
func (t *table) evict() {
	if len(t.subjects) <= maxSubjects {
		return
	}
	use := func(s *subject) float64 {
		if s.held || !s.isKey() {
			return math.Inf(1)
		}
		return s.rate + s.demand + s.inFlight
	}
	slices.SortStableFunc(t.subjects, func(a, b *subject) int {
		switch x, y := use(a), use(b); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	for _, s := range t.subjects[maxSubjects/2:] {
		delete(t.index, s.key)
	}
	clear(t.subjects[maxSubjects/2:])
	t.subjects = t.subjects[:maxSubjects/2]
}
