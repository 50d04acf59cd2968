package blame

import (
	"cmp"
	"math"
	"slices"
	"time"
)

const (
	leastScore = 6.0  // times what nine of ten keys stay below
	alsoScore  = 3.0  // enough for a key that is tried together with one of leastScore
	noise      = 2.0  // times the expected time of a request, as its standard deviation
	dear       = 4.0  // times the typical time of a request
	leastShare = 0.02 // of the pool's time, of one suspect
	jointShare = 0.10 // of all suspects
	maxHeld    = 64
	arrivals   = 3.0 // times the common rise
)

// evidence finds the keys that take more of the back end than is usual for them.
//
// A queue in front of the back end adds the same wait to every request, and a shared processor
// multiplies the time of each. So a request of a key should take wait + factor × its usual time.
type evidence struct {
	factor  float64 // median over keys that usually take longer than most
	typical float64 // median of the usual times
	common  float64 // seconds beyond that, of requests that did not end together
	spread  float64 // seconds that nine of ten keys miss this by at most
	total   float64 // seconds that the requests of all subjects usually take
}

// weigh computes the excess and the score of each subject.
func (e *evidence) weigh(t *table, p *present, seconds float64) {
	e.findFactor(t, p)
	var common, misses medians
	e.total = 0
	for _, s := range t.subjects {
		each, known := s.each()
		if !known {
			continue
		}
		e.total += s.ended * each
		if s.ended > 0.5 && !s.held {
			common.add(s.own/s.ended-e.fit(each), s.rate)
		}
	}
	e.common = max(0, common.value(0))
	for _, s := range t.subjects {
		usual := e.factor * s.expected(t.dearest[s.route])
		most := arrivals * p.rise * s.rate * p.window
		// A change of the mix makes keys more frequent, too, but not the requests of all keys.
		s.byArrivals = s.begun > most+10 && p.extra > (s.begun-most)/2
		took := s.own + s.inFlight*max(0, s.age-2*(max(p.lag, p.wait)+usual))
		if s.byArrivals {
			s.excess = max(took, s.ended*usual) - min(s.ended, most)*usual
			s.score = s.excess
			continue
		}
		s.excess = took - s.ended*(usual+e.common)
		n := math.Sqrt(max(1, s.ended+s.inFlight))
		s.score = s.excess / n
		if each, known := s.each(); known && each < dear*e.typical && s.ended+s.inFlight > 0.5 && s.isKey() && !s.held {
			misses.add(math.Abs(took-s.ended*(e.fit(each)+e.common))/n, 1)
		}
	}
	e.spread = misses.quantile(0.9, 0)
	for _, s := range t.subjects {
		if s.isKey() && !s.held {
			s.compare(seconds, s.expected(t.dearest[s.route]), p)
		}
		s.score /= e.spread + s.noise/max(1, s.ended+s.inFlight) + noise*e.factor*s.expected(t.dearest[s.route]) + 1e-9
		if s.isKey() && s.isDear() {
			s.score = max(s.score, leastScore)
		}
	}
}

// fit returns the time beyond the wait of a request that usually takes this long.
func (e *evidence) fit(each float64) float64 {
	return each + max(0, each-e.typical)*(e.factor-1)
}

// findFactor compares keys that usually take longer than most. The wait includes what the requests
// of most keys now take longer.
func (e *evidence) findFactor(t *table, p *present) {
	var all, factors medians
	for _, s := range t.subjects {
		if each, known := s.each(); known {
			all.add(each, s.rate)
		}
	}
	e.typical = all.value(0)
	for _, s := range t.subjects {
		if each, _ := s.each(); s.costs >= fewSamples && each >= 1.5*e.typical && s.ended > 0.5 && !s.held {
			factors.add((s.own/s.ended-e.typical)/(each-e.typical), s.ended*(each-e.typical))
		}
	}
	e.factor = max(1, factors.value(1))
	if len(factors) < 3 { // a culprit may be among so few
		e.factor = min(e.factor, max(1, p.recent(5)))
	}
}

// suspects returns the keys that may have caused an overload, the strongest first. Before an overload,
// early is set. While a trial runs, trying is set.
func (e *evidence) suspects(t *table, trying, early bool, now time.Time) (found []*subject) {
	var joint float64
	for _, s := range t.subjects {
		if s.held {
			joint += s.excess
		}
		if !s.isKey() || s.held || s.score < alsoScore || s.excess < leastShare*e.total && !(trying && s.isDear()) {
			continue
		}
		// What an early trial did not show, one in an overload may, so only these make a key wait.
		if early && s.isDear() || !early && !s.retry.waits(now) {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b *subject) int {
		return cmp.Or(cmp.Compare(b.excess, a.excess), a.key.Compare(b.key))
	})
	if !slices.ContainsFunc(found, func(s *subject) bool { return s.score >= leastScore }) {
		return nil
	}
	joint = max(0, joint)
	rest := 0.0 // of keys that are no suspects
	for _, s := range t.subjects {
		if s.isKey() && !s.held && !slices.Contains(found, s) {
			rest += max(0, s.excess)
		}
	}
	most := found[0].excess
	found = slices.DeleteFunc(found, func(s *subject) bool { return s.excess < most/20 && !s.isDear() })
	found = found[:min(len(found), maxHeld)]
	for _, s := range found {
		joint += s.excess
	}
	if joint < jointShare*(e.total+joint) || joint < rest*0.4 && !trying {
		return nil
	}
	return found
}
