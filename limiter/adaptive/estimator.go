package adaptive

import (
	"math"
	"time"
)

// estimator finds how many requests a server can work on at a time. Consider a server that
// answers at its highest rate, each request in the time that it takes alone. By Little's law,
// it holds rate × that time. More requests form a queue, which only adds latency:
//
//	limit = rate × base × tolerance + √limit
//
// Here base is the latency without a queue, and tolerance the accepted multiple of it. The root
// allows for chance, which matters for small limits. This is BBR's estimate (Cardwell et al.,
// ACM Queue 14(5), 2016), which Sentinel and kratos also use. It equals the gradient of
// Netflix's concurrency-limits and Envoy, limit × base × tolerance / latency. But the rate of a
// full server does not depend on the limit, so this estimate does not oscillate when answers
// show a change late.
//
// It works in rounds. A round with a latency above base × tolerance lowers the limit. One that
// reached the limit at a lower latency raises it. Other rounds change nothing, so a time
// without requests does not either.
//
// The difficulty is base. During a lasting overload no request has the latency without a queue,
// and the lowest latency ever seen is out of date once the server changes. So at intervals the
// limit is lowered on purpose until the rate follows. While it does not, only the queue was
// cut, which costs nothing. Once it does, there is no queue left, and that round's latency is
// the base. About one round in twenty then serves a third less. Netflix's Gradient2 uses a long
// mean as the base instead, which rises with the queue. Envoy lowers the limit to its minimum
// each time.
type estimator struct {
	min, max  float64
	tolerance float64
	cpuTarget float64
	window    time.Duration

	limit float64
	base  float64    // ns; 0 until it is known
	age   int        // rounds since the base was last confirmed
	probe bool       // whether a base is being probed for
	cut   bool       // whether the limit was lowered after the last round
	wary  int        // rounds in which the limit rises by one only
	full  throughput // throughput before the limit was lowered
	round round
}

// throughput is the work done in a round.
type throughput struct {
	rate float64 // answers per ns
	load float64 // requests at a time: rate × latency
}

// round holds the observations between two changes of the limit.
type round struct {
	start   time.Duration
	n       int     // answers
	sum     float64 // sum of their latencies, ns
	dropped int
	peak    int64 // most requests at a time
}

const (
	roundAnswers    = 30        // minimum of a round, to limit the influence of chance
	probeAnswers    = 100       // minimum of a round of a probe, since its base is to last
	roundLatencies  = 3         // length of a round in latencies, for a new limit to show
	maxRoundLength  = time.Hour // upper bound of that length
	roundStale      = 60        // a round that takes so many times as long is stale: it has seen too little
	probeEvery      = 20        // rounds without a sign that the base is right
	probeCut        = 0.7       // factor of the load, at each step of a probe
	dropCut         = 0.9       // factor of the limit, after a round with drops
	dropShare       = 0.01      // least share of drops in the answers of such a round
	maxCut, maxRise = 0.5, 2    // factors of the limit, by one round
)

// add records the answer to a request that began at start, with inFlight requests in flight
// until now, this one included. It reports whether the round is complete.
func (a *estimator) add(start, now time.Duration, inFlight int64, outcome Outcome) bool {
	r := &a.round
	r.peak = max(r.peak, inFlight)
	switch outcome {
	case Success:
		r.n++
		r.sum += float64(max(now-start, 1))
	case Dropped:
		r.dropped++
	case Ignored:
	}
	length := a.window
	if r.n > 0 {
		length = max(length, time.Duration(min(roundLatencies*r.sum/float64(r.n), float64(maxRoundLength))))
	}
	answers := roundAnswers
	if a.probe || a.age >= probeEvery-1 {
		answers = probeAnswers
	}
	switch elapsed := now - r.start; {
	case elapsed >= length && r.n+r.dropped >= answers:
		return true
	case elapsed < 0 || elapsed/roundStale >= length: // another clock, or stale
		a.round = round{start: now}
	}
	return false
}

// update ends the round at now, and sets the limit. denied reports whether a request was
// denied. cpu is how busy the server is, from 0 to 1, or NaN if unknown.
func (a *estimator) update(now time.Duration, denied bool, cpu float64) {
	r, limit := a.round, a.limit
	elapsed := float64(max(now-r.start, 1))
	flow := throughput{rate: float64(r.n) / elapsed, load: r.sum / elapsed}
	met := denied || float64(r.peak) >= math.Floor(limit)
	if r.n > 0 {
		latency := r.sum / float64(r.n)
		a.updateBase(latency, flow, met, float64(r.peak) <= limit/2)
		a.updateLimit(latency, flow, met)
	}
	if cpu > a.cpuTarget && flow.load > 0 {
		a.limit, a.wary = min(a.limit, flow.load*a.cpuTarget/cpu), probeEvery
	}
	if r.dropped > 0 && float64(r.dropped) >= dropShare*float64(r.n+r.dropped) {
		a.limit, a.wary = min(a.limit, limit*dropCut), probeEvery
	}
	a.limit = min(max(a.limit, limit*maxCut), limit*maxRise)
	a.limit = min(max(a.limit, a.min), a.max)
	a.cut = a.limit < limit
	a.round = round{start: now}
}

// updateBase updates the base from a round.
func (a *estimator) updateBase(latency float64, flow throughput, met, light bool) {
	a.age++
	// The rate fell with the limit, so the limit holds it down and not the server.
	follows := met && a.cut && flow.rate < a.full.rate*0.85
	switch {
	case a.base == 0:
		a.base, a.age = latency, probeEvery // the server may have been full
	case follows && a.probe && flow.load < a.full.load*0.6: // after two cuts: one may be chance
		a.base, a.age, a.probe = latency, 0, false
	case a.probe && met:
		a.base = min(a.base, latency)
	case latency < a.base, light && !met:
		a.base += (latency - a.base) / 4
		a.age, a.probe = 0, false
	case !met: // a probe has no limit to lower; there may be a queue
		a.base += (min(latency, a.base*a.tolerance) - a.base) / 16
		a.probe = false
	case follows && flow.load < a.full.load*0.8: // with a base too low, more than the queue is cut
		a.age = probeEvery
	}
	if !a.probe && !a.cut {
		a.full = flow
	}
}

// updateLimit sets the limit from the round's flow.
func (a *estimator) updateLimit(latency float64, flow throughput, met bool) {
	room := math.Sqrt(a.limit)
	holds := flow.rate*a.base*a.tolerance + room
	queue := latency > a.base*a.tolerance && flow.load > a.limit/2
	switch {
	case met && (a.probe || queue) && a.limit <= a.min: // the latency cannot get better
		a.base, a.age, a.probe = latency, 0, false
	case met && (a.probe || queue && a.age >= probeEvery):
		if !a.probe {
			a.probe, a.full = true, flow
		}
		a.limit = min(math.Ceil(flow.load*probeCut), a.limit-1)
	case queue:
		a.limit = min(a.limit, holds)
	case met && a.wary > 0:
		a.limit++
	case met:
		a.limit = max(holds, a.limit+room)
	}
	a.wary = max(a.wary-1, 0)
}
