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
)

// effect is what a fault excuses, from its beginning until a recovery after its end.
type effect struct {
	publishing bool     // hot keys may be unlimited everywhere
	kafka      bool     // clients of Kafka may be stuck, also after the fault
	redis      bool     // instances may decide exact limits by their parts
	lost       bool     // Redis may forget the permits taken
	spared     []string // limits, named as in run.limitKeys, that redis and lost do not apply to
	anew       bool     // epochs may restart
	aggregator bool     // an aggregator may not answer
	one        bool     // the fields below apply to the instance alone:
	instance   int
	requests   bool // requests may fail
	fresh      bool // the instance restarts and does not know the others at first
}

// concerns reports whether redis and lost apply to a limit.
func (e *effect) concerns(limit string) bool { return !slices.Contains(e.spared, limit) }

// judge passes the clients' observations to the oracle. It is safe for concurrent use.
type judge struct {
	now    func() time.Duration
	report func(oracle.Violation)
	stalls oracle.Stalls

	mu       sync.Mutex
	exact    map[string]*oracle.Limit // limits by "route key"
	local    map[string]*oracle.Limit // limits by "route key", instance and life
	hot      [instances]oracle.Hot
	office   [instances]oracle.Office
	failing  [instances][]*oracle.Span // times in which requests may fail
	silent   []*oracle.Span            // times in which an aggregator may not answer
	troubles troubles                  // troubles that processes report
	levels   []*oracle.Level
	effects  []*effect
	doubts   []doubt
	stalled  func(time.Duration) // ends the allowance for the present stall
	stallEnd time.Duration
	anewTo   time.Duration // time until which epochs may restart
	slowest  time.Duration
	requests int
	limited  int
}

func newJudge(f *fleet, report func(oracle.Violation)) *judge {
	j := &judge{now: f.now, report: report, exact: make(map[string]*oracle.Limit), local: make(map[string]*oracle.Limit), troubles: newTroubles()}
	for i := range instances {
		j.hot[i] = oracle.Hot{Key: "GET /search?" + steadyKey, Process: f.apis[i].name, Deadline: f.patience(), Enough: 30}
		j.office[i] = oracle.Office{
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
func (f *fleet) patience() time.Duration {
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
func (j *judge) limitOf(route, key string, a *api, life int64) *oracle.Limit {
	subject, all := "GET /"+route+"?k="+key, j.exact
	switch {
	case route == "search":
		return nil
	case route != "solo" && !rolling[route].exact:
		subject, all = fmt.Sprintf("%s at %s, life %d", subject, a.name, life), j.local
	}
	l := all[subject]
	if l == nil {
		l = &oracle.Limit{Key: subject}
		all[subject] = l
		if route == "solo" {
			l.Hold(a.name, oracle.Quota{Family: "bucket", Rate: soloRate, Burst: soloBurst}, 0, 0)
		}
	}
	return l
}

// hold records that an instance switched to the limits of a variant between asked and confirmed,
// for the key of each rolling route.
func (j *judge) hold(a *api, variant int, asked, confirmed time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, k := range rollingKeys {
		j.limitOf(k.route, k.key, a, a.lives.Load()).Hold(a.name, rolling[k.route].limits[variant].quota, asked, confirmed+inFlight)
	}
}

// release records that an instance has ended.
func (j *judge) release(a *api) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, k := range rollingKeys {
		j.limitOf(k.route, k.key, a, a.lives.Load()).Release(a.name, j.now())
	}
}

// begin begins a fault and returns a function that ends it.
func (j *judge) begin(e effect) (end func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.now()
	j.effects = append(j.effects, &e)
	j.excuse(&e, now)
	var ends []func(time.Duration)
	for _, l := range j.exact {
		if e.redis && e.concerns(l.Key) {
			ends = append(ends, l.Away(now, instances))
		}
		if e.lost && e.concerns(l.Key) {
			ends = append(ends, l.Lost(now))
		}
		if e.fresh {
			ends = append(ends, l.Fresh(now))
		}
	}
	failing := &oracle.Span{From: now, To: oracle.Forever}
	if e.requests {
		j.failing[e.instance] = append(j.failing[e.instance], failing)
	}
	if e.aggregator {
		j.silent = append(j.silent, failing)
	}
	return func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		now := j.now()
		j.excuse(&e, now)
		j.effects = slices.DeleteFunc(j.effects, func(o *effect) bool { return o == &e })
		failing.To = now + settling
		if e.lost || e.anew {
			j.anewTo = now + recovery
		}
		for _, end := range ends {
			end(now + recovery + time.Second)
		}
	}
}

// excuse applies the effect's excuses up to now.
func (j *judge) excuse(e *effect, now time.Duration) {
	for i := range instances {
		mine := e.one && e.instance == i
		if e.publishing || mine {
			j.hot[i].Excuse(now)
		}
		if e.redis && e.concerns(j.office[i].Key) || mine {
			j.office[i].Excuse(now)
		}
	}
	for _, l := range j.levels {
		l.Excuse(now)
	}
	if e.kafka {
		j.troubles.fault(now)
	}
}

// disturbed reports whether a fault that satisfies is is in progress.
func (j *judge) disturbed(is func(*effect) bool) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.effects, is)
}

// excusesSilence reports whether a fault excuses that an aggregator did not answer a request
// within the span.
func (j *judge) excusesSilence(asked oracle.Span) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.silent, func(s *oracle.Span) bool { return s.From <= asked.To && asked.From <= s.To })
}

// anew reports whether epochs may restart.
func (j *judge) anew() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.now() < j.anewTo || slices.ContainsFunc(j.effects, func(e *effect) bool { return e.lost || e.anew })
}

// stall records that the machine stood still. A call to Redis may have timed out because of it,
// so instances may decide by their parts.
func (j *judge) stall(s oracle.Span) {
	j.stalls.Add(s)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stalled == nil || s.From > j.stallEnd {
		var ends []func(time.Duration)
		for _, l := range j.exact {
			ends = append(ends, l.Away(s.From-redisTimeout, instances))
		}
		j.stalled = func(to time.Duration) {
			for _, end := range ends {
				end(to)
			}
		}
	}
	j.stallEnd = s.To + recovery
	j.stalled(j.stallEnd)
	if s.To-s.From < redisTimeout {
		return // a probe after 100 ms finds Redis again
	}
	for i := range j.office {
		j.office[i].Excuse(s.To)
	}
}

// finish lets the oracle judge for the last time.
func (j *judge) finish() {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.now() + time.Minute // by then everything is known
	j.settle(now)
	j.checkLimits(now)
}

// check lets the oracle judge. If quick is true, it makes only the cheap checks.
func (j *judge) check(quick bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.now()
	for _, e := range j.effects {
		j.excuse(e, now)
	}
	j.excuseTroubles(now)
	tell := func(v *oracle.Violation) {
		if v != nil {
			j.report(*v)
		}
	}
	j.settle(now)
	for i := range instances {
		tell(j.hot[i].Check(now, &j.stalls))
		tell(j.office[i].Check(now, &j.stalls))
	}
	if quick {
		return
	}
	j.checkLimits(now)
	for i := range j.failing {
		j.failing[i] = slices.DeleteFunc(j.failing[i], func(s *oracle.Span) bool { return s.To < now-time.Minute })
	}
}

func (j *judge) checkLimits(now time.Duration) {
	for _, all := range []map[string]*oracle.Limit{j.exact, j.local} {
		for _, l := range all {
			if v := l.Check(now); v != nil {
				j.report(*v)
			}
		}
	}
}

// maxIdle is the number of silent connections that an aggregator may keep open beyond its
// time-outs.
const maxIdle = 600

// idle judges the number of silent connections to a process that are still open at the end.
func (j *judge) idle(name string, open int) {
	if open > maxIdle {
		j.report(oracle.Violation{At: j.now(), Invariant: oracle.I4, Subject: name, Text: fmt.Sprintf(
			"%d of %d connections that said nothing are still open, at most %d", open, idlers, maxIdle)})
	}
}

// maxLoads is the most times per second that an instance may load the published set, or check it,
// because of changes published by others.
const maxLoads = 20

// loads judges the number of times that instances loaded the published set.
func (j *judge) loads(n float64, within time.Duration) {
	if most := maxLoads * instances * (within.Seconds() + 1); n > most {
		j.report(oracle.Violation{At: j.now(), Invariant: oracle.I4, Subject: "loads of the published set", Text: fmt.Sprintf(
			"%.0f within %v, at most %.0f", n, within.Round(time.Millisecond), most)})
	}
}
