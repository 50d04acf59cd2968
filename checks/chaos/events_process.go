package chaos

import "time"

// processKinds are faults of hotparam's own processes, and the event without a fault. This one has no
// weight: it occurs only if Config.Only names it.
var processKinds = []eventKind{
	{name: "nothing", shortest: 8 * time.Second, longest: 12 * time.Second, begin: func(*run, *plannedFault) func() { return nothing }},
	{name: "kill-instance", weight: 2, scenarios: []string{"recovery"}, exclusive: "instance", shortest: 500 * time.Millisecond, longest: 2 * time.Second, begin: killInstance},
	{name: "stop-instance", weight: 2, scenarios: []string{"recovery", "limits"}, exclusive: "instance", shortest: 500 * time.Millisecond, longest: 4 * time.Second, begin: stopInstance},
	{name: "kill-aggregator", weight: 2, scenarios: []string{"recovery", "publishing"}, exclusive: "aggregator", shortest: 500 * time.Millisecond, longest: 4 * time.Second, begin: killAggregator},
	{name: "stop-aggregator", weight: 2, scenarios: []string{"recovery", "publishing"}, exclusive: "aggregator", shortest: time.Second, longest: 6 * time.Second, begin: stopAggregator},
	{name: "second-aggregator", weight: 2, scenarios: []string{"recovery", "publishing"}, exclusive: "aggregator", shortest: 3 * time.Second, longest: 6 * time.Second, begin: secondAggregator},
}

// killInstance kills an instance (SIGKILL) and starts it again. Only that one decides locally
// (alone: 1), as the others still have Redis.
func killInstance(r *run, e *plannedFault) func() {
	a := r.apis[e.target]
	return r.during(effect{excuses: mayFailRequests | mayStartFresh | mayDecideLocally, instance: e.target, alone: 1}, func() {
		a.kill()
		r.judge.recordExit(a)
	}, a.start)
}

// stopInstance stops an instance (SIGSTOP) and resumes it.
func stopInstance(r *run, e *plannedFault) func() {
	a := r.apis[e.target]
	return r.during(effect{excuses: mayFailRequests | mayDecideLocally, instance: e.target, alone: 1}, a.stop, a.resume)
}

// victim returns the aggregator that a fault hits.
func (r *run) victim(e *plannedFault) *aggregator {
	return r.aggregators[e.rng().IntN(len(r.aggregators))]
}

func killAggregator(r *run, e *plannedFault) func() {
	g := r.victim(e)
	return r.during(effect{excuses: mayMissHotKeys | mayNotAnswer}, g.kill, g.start)
}

func stopAggregator(r *run, e *plannedFault) func() {
	g := r.victim(e)
	return r.during(effect{excuses: mayMissHotKeys | mayNotAnswer}, g.stop, g.resume)
}

// secondAggregator starts another aggregator by mistake and kills it later. It gets no counts and
// claims to publish for the same namespace.
func secondAggregator(r *run, _ *plannedFault) func() {
	second := r.newAggregator("aggregator-by-mistake")
	return r.during(effect{excuses: mayMissHotKeys}, second.start, second.kill)
}
