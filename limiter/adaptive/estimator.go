package adaptive

import (
	"math"
	"time"
)

// estimator finds how many requests a server can be given at a time. It is Little's
// law, read backwards: a server that answers at its highest rate, and each request in
// the time that it takes alone, holds rate × that time. More than this is a queue, which
// adds to the latency and to nothing else:
//
//	limit = rate × base × tolerance + √limit
//
// where base is the latency without a queue, tolerance how much longer an answer may
// take, and the root the room for chance, which matters when the limit is small. That
// is BBR's reckoning (Cardwell et al., ACM Queue 14(5), 2016), as Sentinel and kratos
// took it over from there, and comes to the same as the gradient of Netflix's
// concurrency-limits and Envoy, limit × base × tolerance / latency; but the rate of a
// server that is full does not depend on the limit, so that this does not swing when
// answers are late to tell of a change.
//
// It works in rounds. One whose latency is above base × tolerance lowers the limit; one
// that met the limit without that raises it; others change nothing, so that a spell
// without requests does not.
//
// What is hard is base: under a lasting overload nobody sees the latency without a
// queue, and the least that was ever seen is out of date after a change of the server.
// So the limit is lowered on purpose, every so often, until the rate follows: as long
// as it does not, what was cut was queue, and costs nothing; once it does, there is none
// left, and the latency of that round is the base. One round in twenty is then served a
// third less. Netflix's Gradient2 takes a long mean for the base instead, and goes up
// with the queue; Envoy lowers the limit to its least each time.
type estimator struct {
	min, max  float64
	tolerance float64
	cpuTarget float64
	window    time.Duration

	limit float64
	base  float64    // ns; 0: not known yet
	age   int        // rounds since base was last known to be right
	probe bool       // it is being looked for
	cut   bool       // the limit was lowered after the last round
	wary  int        // rounds in which it is raised by one only
	full  throughput // before it was lowered
	round round
}

// throughput is how much was served in a round.
type throughput struct {
	rate float64 // answers per ns
	load float64 // requests at a time: rate × latency
}

// round is what is seen from one reckoning to the next.
type round struct {
	start   time.Duration
	n       int     // answers
	sum     float64 // of their latencies, ns
	dropped int
	peak    int64 // requests at a time, at most
}

const (
	roundAnswers    = 30        // a round has so many at least, or chance has too much to say,
	probeAnswers    = 100       // and one of a probe, since its base is to last;
	roundLatencies  = 3         // it lasts so many latencies, for a new limit to show,
	maxRoundLength  = time.Hour // if that is not too long;
	roundStale      = 60        // what takes so many times as long has seen too little to tell
	probeEvery      = 20        // rounds without a sign that the base is right
	probeCut        = 0.7       // of the load, at each step of a probe
	dropCut         = 0.9       // of the limit, after a round with drops
	dropShare       = 0.01      // of its answers, at least
	maxCut, maxRise = 0.5, 2    // of the limit, by one round
)

// add adds an answer to a request that began at start; inFlight requests were there
// until now, itself included. True: the round is complete.
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

// reckon ends the round at now, and sets the limit. Denied tells whether somebody was.
// Cpu is how busy the server is, 0 to 1; not a number: nobody knows.
func (a *estimator) reckon(now time.Duration, denied bool, cpu float64) {
	r, limit := a.round, a.limit
	elapsed := float64(max(now-r.start, 1))
	flow := throughput{rate: float64(r.n) / elapsed, load: r.sum / elapsed}
	met := denied || float64(r.peak) >= math.Floor(limit)
	if r.n > 0 {
		latency := r.sum / float64(r.n)
		a.learn(latency, flow, met, float64(r.peak) <= limit/2)
		a.follow(latency, flow, met)
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

// learn learns the base from a round.
func (a *estimator) learn(latency float64, flow throughput, met, light bool) {
	a.age++
	// The rate fell with the limit, which so is what holds it down, not the server.
	follows := met && a.cut && flow.rate < a.full.rate*0.85
	switch {
	case a.base == 0:
		a.base, a.age = latency, probeEvery // it may be of a server that is full
	case follows && a.probe && flow.load < a.full.load*0.6: // after two cuts: one may be chance
		a.base, a.age, a.probe = latency, 0, false
	case a.probe && met:
		a.base = min(a.base, latency)
	case latency < a.base, light && !met:
		a.base += (latency - a.base) / 4
		a.age, a.probe = 0, false
	case !met: // there is no limit that a probe could lower; a queue may be there
		a.base += (min(latency, a.base*a.tolerance) - a.base) / 16
		a.probe = false
	case follows && flow.load < a.full.load*0.8: // with a base too low, more than queue is cut
		a.age = probeEvery
	}
	if !a.probe && !a.cut {
		a.full = flow
	}
}

// follow sets the limit by the round's flow.
func (a *estimator) follow(latency float64, flow throughput, met bool) {
	room := math.Sqrt(a.limit)
	holds := flow.rate*a.base*a.tolerance + room
	queue := latency > a.base*a.tolerance && flow.load > a.limit/2
	switch {
	case met && (a.probe || queue) && a.limit <= a.min: // there is no better latency to be had
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
