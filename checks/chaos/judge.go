package chaos

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hotparam/hotparam/checks/chaos/oracle"
)

// Deadlines for the recovery from a fault, and allowances until then.
const (
	recovery       = 3 * time.Second
	requestTimeout = 8 * time.Second
	// maxLatency is the longest time for a request whose limit is decided in the instance. A
	// request that asks Redis may take longer by the time-out of Redis, whatever state Redis is
	// in.
	maxLatency = 200 * time.Millisecond
	// settling is the time after a fault's end in which requests that it hit may still fail.
	settling = time.Second
	// inFlight is the longest time for which a request may still be served under the old rules.
	inFlight = time.Second
	// changeSpread is the longest time in which a change of an answer in memory reaches all instances.
	changeSpread = time.Second
)

// judge passes the clients' observations to the oracle. It is safe for concurrent use.
type judge struct {
	now    func() time.Duration
	report func(oracle.Violation)
	stalls oracle.Stalls

	mu                 sync.Mutex
	exactLimits        map[string]*oracle.KeyLimit               // limits by "route key"
	fleetLimits        map[string]*oracle.KeyLimit               // limits by "route key", whose permits instances hold
	localLimits        map[string]*oracle.KeyLimit               // limits by "route key", instance and life
	hot                map[string]*[instances]oracle.Enforcement // by route
	decider            [instances]oracle.Decider
	memory             oracle.Memory             // judges the answers of the route items
	runs               map[string]bool           // runs of its handler that have been seen
	failing            [instances][]*oracle.Span // times in which requests may fail
	silences           []*oracle.Span            // times in which an aggregator may not answer
	troubles           troubles                  // troubles that processes report
	levels             []*oracle.Level
	effects            []*effect
	doubts             []doubt
	endStall           func(time.Duration) // ends the allowance for the present stall
	stallEnd           time.Duration
	epochsRestartUntil time.Duration // time until which epochs may restart
	slowest            time.Duration
	requests           int
	limited            int
	shared             int // answers to items whose runs had answered others before
	changes            int // changes of items
}

func newJudge(f *processFleet, report func(oracle.Violation)) *judge {
	j := &judge{now: f.now, report: report, exactLimits: make(map[string]*oracle.KeyLimit), fleetLimits: make(map[string]*oracle.KeyLimit),
		localLimits: make(map[string]*oracle.KeyLimit), troubles: newTroubles(),
		memory: oracle.Memory{Spread: changeSpread, Slack: maxLatency}, runs: make(map[string]bool),
		hot: map[string]*[instances]oracle.Enforcement{"search": {}, "fleet": {}, "items": {}}}
	for i := range instances {
		j.hot["search"][i] = oracle.Enforcement{Key: "GET /search?" + steadyKey, Process: f.apis[i].name, Deadline: f.patience(), Enough: 30}
		j.hot["fleet"][i] = oracle.Enforcement{Key: "GET /fleet?k=a", Process: f.apis[i].name, Deadline: f.patience(), Enough: 30}
		j.hot["items"][i] = oracle.Enforcement{Key: itemsKey, Process: f.apis[i].name, Deadline: f.patience(), Enough: 30}
		j.decider[i] = oracle.Decider{
			Key: "GET /solo?k=" + soloKey(i), Process: f.apis[i].name, Rate: soloRate, Deadline: recovery, Window: 3 * time.Second,
		}
	}
	for _, a := range f.apis {
		j.limitOf("solo", soloKey(a.index), a, 1)
		for _, k := range rollingKeys {
			j.limitOf(k.route, k.key, a, 1) // created now, since faults extend only existing limits
		}
	}
	return j
}

// patience returns the time after a fault in which a hot key may be unlimited.
func (f *processFleet) patience() time.Duration {
	if f.kafka != nil {
		return recovery + kafkaSession
	}
	return recovery
}

// soloKey returns the key that only one instance asks for. The names place the keys on three
// nodes of a cluster.
func soloKey(instance int) string { return fmt.Sprintf("mine-%d", instance+1) }

// limitOf returns the limit that judges the admissions of a key of a route at an instance, or nil
// if none does.
func (j *judge) limitOf(route, key string, a *api, life int64) *oracle.KeyLimit {
	subject, all := "GET /"+route+"?k="+key, j.exactLimits
	switch {
	case route == "search" || route == "items":
		return nil
	case route == "fleet":
		all = j.fleetLimits
	case route != "solo" && !rolling[route].shared:
		subject, all = fmt.Sprintf("%s at %s, life %d", subject, a.name, life), j.localLimits
	}
	l := all[subject]
	if l == nil {
		l = &oracle.KeyLimit{Key: subject}
		all[subject] = l
		if route == "solo" {
			l.Hold(a.name, oracle.Quota{Family: "bucket", Rate: soloRate, Burst: soloBurst}, 0, 0)
		}
	}
	return l
}

// recordSwitch records that an instance switched to the limits of a variant between asked and
// confirmed, for the key of each rolling route.
func (j *judge) recordSwitch(a *api, variant int, asked, confirmed time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, k := range rollingKeys {
		j.limitOf(k.route, k.key, a, a.lives.Load()).Hold(a.name, rolling[k.route].limits[variant].quota, asked, confirmed+inFlight)
	}
}

// recordExit records that an instance has ended.
func (j *judge) recordExit(a *api) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, k := range rollingKeys {
		j.limitOf(k.route, k.key, a, a.lives.Load()).Release(a.name, j.now())
	}
}

// beginFault begins a fault and returns a function that ends it.
func (j *judge) beginFault(e effect) (end func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.now()
	j.effects = append(j.effects, &e)
	j.applyExcuses(&e, now)
	var ends []func(time.Duration)
	for _, l := range j.exactLimits {
		if e.has(mayDecideLocally) && e.affects(l.Key) {
			ends = append(ends, l.AllowParts(now, instances))
		}
		if e.has(mayLoseGrants) && e.affects(l.Key) {
			ends = append(ends, l.AllowLoss(now, 0))
		}
		if e.has(mayStartFresh) {
			ends = append(ends, l.AllowFresh(now))
		}
	}
	ends = append(ends, j.allowFleet(&e, now)...)
	ends = append(ends, j.faultsOfMemory(&e, now)...)
	failing := &oracle.Span{From: now, To: oracle.Forever}
	if e.has(mayFailRequests) {
		j.failing[e.instance] = append(j.failing[e.instance], failing)
	}
	if e.has(mayNotAnswer) {
		j.silences = append(j.silences, failing)
	}
	return func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		now := j.now()
		j.applyExcuses(&e, now)
		j.effects = slices.DeleteFunc(j.effects, func(o *effect) bool { return o == &e })
		failing.To = now + settling
		if e.has(mayLoseGrants | mayRestartEpochs) {
			j.epochsRestartUntil = now + recovery
		}
		for _, end := range ends {
			end(now + recovery + time.Second)
		}
	}
}

// allowFleet allows what an effect that has just begun excuses for limits whose permits instances
// hold, and returns functions that end that. It is less than for other limits. State that is lost
// begins empty, and so do the parts by which instances decide. All parts together are the limit
// itself, unless some instances reach Redis.
func (j *judge) allowFleet(e *effect, now time.Duration) (ends []func(time.Duration)) {
	restarting := len(j.effects) > 1 && slices.ContainsFunc(j.effects, func(o *effect) bool { return o.has(mayStartFresh) })
	for _, l := range j.fleetLimits {
		if e.has(mayDecideLocally) && e.affects(l.Key) {
			switch {
			case e.alone > 0:
				ends = append(ends, l.AllowApart(now, float64(e.alone)/instances))
			case e.has(mayLoseWrites): // instances find another server one after the other
				ends = append(ends, l.AllowApart(now, allButOne))
			default: // they find the same one again so
				ends = append(ends, func(to time.Duration) { l.AllowApart(j.now()-time.Second, allButOne)(to) })
			}
		}
		switch {
		case !e.affects(l.Key):
		case e.has(mayLoseWrites):
			ends = append(ends, l.AllowLoss(now, maxLag))
		case e.has(mayMixGrants):
			ends = append(ends, l.AllowLoss(now, 0))
		}
		// An instance that has just started knows neither the others nor that there was a state.
		if restarting {
			ends = append(ends, l.AllowFresh(now))
		}
	}
	return ends
}

// during begins a fault with an effect and returns a function that ends it.
func (r *run) during(e effect, begin, end func()) (mend func()) {
	over := r.judge.beginFault(e)
	begin()
	return func() {
		end()
		over()
	}
}

// applyExcuses applies the effect's excuses up to now.
func (j *judge) applyExcuses(e *effect, now time.Duration) {
	for i := range instances {
		isTarget := e.failsRequestsOf(i)
		if e.has(mayMissHotKeys) || isTarget {
			j.excuseHot(i, now)
		}
		if e.has(mayDecideLocally) && e.affects(j.decider[i].Key) || isTarget {
			j.decider[i].Excuse(now)
		}
	}
	for _, l := range j.levels {
		l.Excuse(now)
	}
	if e.has(mayTroubleKafka) {
		j.troubles.recordFault(now)
	}
}

// excuseHot allows hot keys to be unlimited at an instance up to now.
func (j *judge) excuseHot(instance int, now time.Duration) {
	for _, hot := range j.hot {
		hot[instance].Excuse(now)
	}
}

// hasFault reports whether a fault that matches is in progress.
func (j *judge) hasFault(matches func(*effect) bool) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.effects, matches)
}

// excusesSilence reports whether a fault excuses that an aggregator did not answer a request
// within the span.
func (j *judge) excusesSilence(asked oracle.Span) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.silences, func(s *oracle.Span) bool { return s.From <= asked.To && asked.From <= s.To })
}

// epochsMayRestart reports whether epochs may restart.
func (j *judge) epochsMayRestart() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.now() < j.epochsRestartUntil || slices.ContainsFunc(j.effects, func(e *effect) bool { return e.has(mayLoseGrants | mayRestartEpochs) })
}

// recordStall records that the machine stood still. A call to Redis may have timed out because of
// it, so instances may decide by their parts.
func (j *judge) recordStall(s oracle.Span) {
	j.stalls.Add(s)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.endStall == nil || s.From > j.stallEnd {
		var ends []func(time.Duration)
		for _, l := range j.exactLimits {
			ends = append(ends, l.AllowParts(s.From-redisTimeout, instances))
		}
		for _, l := range j.fleetLimits {
			ends = append(ends, l.AllowApart(s.From-redisTimeout, allButOne))
		}
		j.endStall = func(to time.Duration) {
			for _, end := range ends {
				end(to)
			}
		}
	}
	j.stallEnd = s.To + recovery
	j.endStall(j.stallEnd)
	if s.To-s.From < redisTimeout {
		return // a probe after 100 ms finds Redis again
	}
	for i := range j.decider {
		j.decider[i].Excuse(s.To)
	}
}

// checkFinally lets the oracle judge for the last time.
func (j *judge) checkFinally() {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.now() + time.Minute // by then everything is known
	j.reportDoubts(now)
	j.checkLimits(now)
	j.reportFound(j.memory.Check(now, &j.stalls))
}

// check lets the oracle judge. If quick is true, it makes only the cheap checks.
func (j *judge) check(quick bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.now()
	for _, e := range j.effects {
		j.applyExcuses(e, now)
	}
	j.excuseTroubles(now)
	j.reportDoubts(now)
	for i := range instances {
		for _, hot := range j.hot {
			j.reportFound(hot[i].Check(now, &j.stalls))
		}
		j.reportFound(j.decider[i].Check(now, &j.stalls))
	}
	if quick {
		return
	}
	j.checkLimits(now)
	j.reportFound(j.memory.Check(now, &j.stalls))
	for i := range j.failing {
		j.failing[i] = slices.DeleteFunc(j.failing[i], func(s *oracle.Span) bool { return s.To < now-time.Minute })
	}
}

func (j *judge) checkLimits(now time.Duration) {
	for _, all := range []map[string]*oracle.KeyLimit{j.exactLimits, j.fleetLimits, j.localLimits} {
		for _, l := range all {
			j.reportFound(l.Check(now))
		}
	}
}

// reportFound reports a violation, if there is one.
func (j *judge) reportFound(v *oracle.Violation) {
	if v != nil {
		j.report(*v)
	}
}

// maxIdle is the number of silent connections that an aggregator may keep open beyond its
// time-outs.
const maxIdle = 600

// checkIdle judges the number of silent connections to a process that are still open at the end.
func (j *judge) checkIdle(name string, open int) {
	if open > maxIdle {
		j.report(oracle.Violation{At: j.now(), Invariant: oracle.I4, Subject: name, Text: fmt.Sprintf(
			"%d of %d connections that said nothing are still open, at most %d", open, idlers, maxIdle)})
	}
}

// maxLoads is the most times per second that an instance may load the published set, or check it,
// because of changes published by others.
const maxLoads = 20

// checkLoads judges the number of times that instances loaded the published set.
func (j *judge) checkLoads(n float64, within time.Duration) {
	if limit := maxLoads * instances * (within.Seconds() + 1); n > limit {
		j.report(oracle.Violation{At: j.now(), Invariant: oracle.I4, Subject: "loads of the published set", Text: fmt.Sprintf(
			"%.0f within %v, at most %.0f", n, within.Round(time.Millisecond), limit)})
	}
}
