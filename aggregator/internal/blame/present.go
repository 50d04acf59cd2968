package blame

import (
	"math"
	"slices"
)

const (
	slowFactor = 1.6 // times the usual time of a request
	slowExtra  = 1.0 // requests in flight beyond the usual ones
	slowest    = 2.5 // that a step counts for permits
	hurtFactor = 1.2 // times the usual slowness
	slowSteps  = 4   // of the last five
	slowOften  = 7   // of the last len(present.flags)
)

// present has the present times of keys that are not held. Each figure is the median over keys,
// weighted by their usual requests. So a key that is slow alone does not move it, and neither does a
// change of the mix.
type present struct {
	slow    float64 // times the usual time of a request, by the requests in flight
	lag     float64 // seconds beyond it
	wait    float64 // the same for requests that ended in the step
	scatter float64 // seconds by which nine of ten keys miss that in the step
	rise    float64 // times the usual requests

	steps  [5]float64  // slow in the last steps, the newest first
	loads  [10]float64 // requests in flight in the last steps, the newest first
	flags  [20]bool    // whether each of more was an overload
	smooth float64     // slow of the last second, at most slowest
	level  float64     // its usual value, while no key is held
	window float64     // seconds of the sums of subjects
	begun  float64     // recent requests of keys that are not held

	extra         float64 // recent requests beyond rise × the usual ones, and beyond chance
	usualInFlight float64 // requests of keys that are not held
	each          float64 // seconds that one of them usually takes
}

func (p *present) measure(subjects []*subject, seconds float64) {
	if p.level == 0 {
		p.level = 1
	}
	keep := decay(seconds)
	p.window = p.window*keep + seconds
	p.begun *= keep
	var slow, lag, wait, rise medians
	var rate, usualBegun float64
	p.usualInFlight = 0
	load := 0.0
	for _, s := range subjects {
		each, known := s.each()
		if s.held {
			continue
		}
		p.begun += float64(s.step.Begun)
		load += s.step.Busy.Seconds() / seconds
		usualBegun += s.rate * p.window
		if !known || s.rate == 0 {
			continue
		}
		p.usualInFlight += s.rate * each
		rate += s.rate
		u := &s.step
		if u.Busy > 0 {
			// By Little's law the time in flight for each request that ends is its time, and it is
			// known before the request ends.
			ended := float64(u.Ended)
			if ended == 0 {
				ended = max(0.5, s.rate*seconds)
			}
			now := u.Busy.Seconds() / ended
			slow.add(now/each, s.rate)
			lag.add(now-each, s.rate)
		}
		if u.Ended > 0 {
			wait.add(u.Took.Seconds()/float64(u.Ended)-each, s.rate)
		}
		rise.add((s.begun*keep+float64(u.Begun))/(s.rate*p.window), s.rate)
	}
	p.each = p.usualInFlight / max(rate, 1e-9)
	p.slow, p.lag = slow.value(1), max(0, lag.value(0))
	p.wait = max(0, wait.value(p.wait))
	p.rise = max(1, rise.value(1))
	p.scatter = scatter(subjects, p.wait)
	p.extra = p.begun - p.rise*usualBegun - 4*math.Sqrt(usualBegun)
	copy(p.steps[1:], p.steps[:])
	copy(p.flags[1:], p.flags[:])
	p.smooth += (min(p.slow, slowest) - p.smooth) * (1 - math.Exp2(-seconds/0.5))
	p.steps[0] = p.slow
	copy(p.loads[1:], p.loads[:])
	p.loads[0] = load
	p.flags[0] = p.slow >= slowFactor && (p.slow-1)*p.usualInFlight >= slowExtra
}

// overloaded reports whether the others are slow, and not just for a moment: all the time, or again
// and again, as when a queue builds up and drains.
func (p *present) overloaded() bool {
	newest, all := 0, 0
	for i, f := range p.flags {
		if f {
			all++
			if i < len(p.steps) {
				newest++
			}
		}
	}
	return newest >= slowSteps || all >= slowOften
}

// hurt reports whether the others are slower than usual by little, which takes a second to see.
func (p *present) hurt() bool { return p.smooth >= hurtFactor*p.level }

// scatter returns by how much nine of ten keys at most miss the common wait in a step. It is high in
// a step in which everything stood still for a moment, since requests that began later waited less.
func scatter(subjects []*subject, wait float64) float64 {
	var misses medians
	for _, s := range subjects {
		if each, known := s.each(); known && !s.held && s.step.Ended > 0 {
			misses.add(math.Abs(s.step.Took.Seconds()/float64(s.step.Ended)-each-wait), 1)
		}
	}
	return misses.quantile(0.9, 0)
}

// drains reports whether the requests in flight become fewer: a queue that grew before a hold may
// take longer to drain than a trial.
func (p *present) drains() bool {
	last := len(p.loads) - 1
	return p.loads[0]+p.loads[1] < 0.95*(p.loads[last]+p.loads[last-1])
}

// recent returns the median of slow over the last n steps.
func (p *present) recent(n int) float64 {
	last := slices.Clone(p.steps[:n])
	slices.Sort(last)
	return last[n/2]
}

// medians collects weighted values.
type medians []struct{ value, weight float64 }

func (m *medians) add(value, weight float64) {
	*m = append(*m, struct{ value, weight float64 }{value, weight})
}

// value returns the weighted median, or none if there are no values.
func (m medians) value(none float64) float64 { return m.quantile(0.5, none) }

func (m medians) quantile(q, none float64) float64 {
	slices.SortFunc(m, func(a, b struct{ value, weight float64 }) int {
		switch {
		case a.value < b.value:
			return -1
		case a.value > b.value:
			return 1
		}
		return 0
	})
	var all, sum float64
	for _, v := range m {
		all += v.weight
	}
	for _, v := range m {
		if sum += v.weight; sum >= all*q {
			return v.value
		}
	}
	return none
}
