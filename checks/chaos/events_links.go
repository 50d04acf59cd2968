package chaos

import (
	"fmt"
	"time"

	"github.com/hotparam/hotparam/checks/chaos/oracle"
)

// linkKinds are faults of the link between two processes.
var linkKinds = []eventKind{
	{name: "slow-link", weight: 2, scenarios: []string{"recovery", "links"}, deployment: "single", exclusive: "redis", shortest: 2 * time.Second, longest: 5 * time.Second, begin: link(slow)},
	{name: "silent-link", weight: 2, scenarios: []string{"recovery", "links"}, deployment: "single", exclusive: "redis", shortest: time.Second, longest: 5 * time.Second, begin: link(silent)},
	{name: "cut-link", weight: 1, scenarios: []string{"recovery", "links"}, deployment: "single", exclusive: "redis", shortest: time.Second, longest: 5 * time.Second, begin: link(cut)},
	{name: "garbled-link", weight: 2, scenarios: []string{"recovery", "links"}, deployment: "single", exclusive: "redis", shortest: time.Second, longest: 3 * time.Second, begin: link(garbled)},
	{name: "slow-restart", weight: 1, scenarios: []string{"recovery", "links"}, deployment: "single", exclusive: "redis", shortest: 2 * time.Second, longest: 4 * time.Second, begin: slowRestart},
	{name: "lost-counts", weight: 1, scenarios: []string{"recovery", "links"}, deployment: "statsd", exclusive: "counts", shortest: time.Second, longest: 4 * time.Second, begin: loseCounts},
	{name: "clock", weight: 2, scenarios: []string{"links"}, deployment: "statsd", exclusive: "counts", shortest: 4 * time.Second, longest: 6 * time.Second, begin: shiftClock},
}

// link sets the mode of all links to Redis, of the links of one instance, or of the links of the
// aggregators.
func link(m mode) func(r *run, e *plannedFault) func() {
	return func(r *run, e *plannedFault) func() {
		var relays []*tcpRelay
		which := e.rng().IntN(3)
		if which != 1 {
			for _, g := range r.aggregators {
				relays = append(relays, g.redis)
			}
		}
		if which != 2 {
			for _, a := range r.apis {
				if which == 0 || a.index == e.target {
					relays = append(relays, a.redis)
				}
			}
		}
		r.logf("         %s", []string{"all links", "that of the instance", "those of the aggregators"}[which])
		excused := effect{excuses: mayMissHotKeys}
		if which != 2 {
			excused.excuses |= mayDecideLocally | mayMissChanges
		}
		if which == 1 {
			excused.alone, excused.instance = 1, e.target
		}
		if m == garbled {
			excused.excuses |= mayLoseGrants | mayMixGrants // a command goes through, but its answer may be that of another one
		}
		return r.during(excused, func() { setAll(relays, m) }, func() { setAll(relays, through) })
	}
}

func setAll(relays []*tcpRelay, m mode) {
	for _, relay := range relays {
		relay.setMode(m)
	}
}

// slowRestart restarts Redis without its data and delays its first answers.
func slowRestart(r *run, _ *plannedFault) func() {
	var relays []*tcpRelay
	for _, g := range r.aggregators {
		relays = append(relays, g.redis)
	}
	for _, a := range r.apis {
		relays = append(relays, a.redis)
	}
	return r.during(lossEffect, func() {
		setAll(relays, slow)
		r.redis.single.Restart()
	}, func() { setAll(relays, through) })
}

// loseCounts drops all counts of an instance.
func loseCounts(r *run, e *plannedFault) func() {
	cut := func(cut bool) {
		for _, relay := range r.apis[e.target].counts {
			relay.SetCut(cut)
		}
	}
	return r.during(effect{excuses: mayMissHotKeys}, func() { cut(true) }, func() { cut(false) })
}

// shiftClock sets an instance's clock, as the aggregators see it, off by up to a second or up to
// half a minute, and then right again. The counts must be counted as if the clock were right, and
// a metric must report the clock.
func shiftClock(r *run, e *plannedFault) func() {
	rng := e.rng()
	maxMilliseconds := []int{1000, 30_000}[rng.IntN(2)]
	offset := time.Duration(rng.IntN(2*maxMilliseconds)-maxMilliseconds) * time.Millisecond
	r.logf("         by %v", offset)
	late := r.countsMetric("hotparam_late_counts_total")
	for _, relay := range r.apis[e.target].counts {
		relay.setOffset(offset)
	}
	return func() {
		if off := r.countsMetric("hotparam_statsd_off_clocks"); offset.Abs() > offFrom && off <= 0 && len(e.parts) == 1 {
			r.recordViolation(oracle.Violation{At: r.now(), Invariant: oracle.I2, Subject: "hotparam_statsd_off_clocks", Text: fmt.Sprintf(
				"none, with the clock of %s off by %v", r.apis[e.target].name, offset)})
		}
		if lost := r.countsMetric("hotparam_late_counts_total") - late; lost > 0 && len(e.parts) == 1 {
			r.logf("         %v counts came too late", lost)
		}
		for _, relay := range r.apis[e.target].counts {
			relay.setOffset(0)
		}
	}
}

// offFrom is the offset from which a clock is certain to be reported.
const offFrom = time.Second

// countsMetric returns the sum of a metric over all aggregators.
func (r *run) countsMetric(name string) (sum float64) {
	for _, g := range r.aggregators {
		if n, err := g.metric(r.Context(), r.load.client[0], name); err == nil {
			sum += n
		}
	}
	return sum
}
