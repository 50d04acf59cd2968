package chaos

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/hotparam/hotparam/checks/chaos/oracle"
	"github.com/hotparam/hotparam/internal/testenv"
)

// Report is the outcome of a run.
type Report struct {
	Config     Config
	Events     []string
	Violations []oracle.Violation
	Requests   int           // answered requests
	Limited    int           // refused requests among them
	Shared     int           // answers among them that came from memory, or from the run for another request
	Changes    int           // changes that made answers in memory invalid
	Slowest    time.Duration // slowest request that did not wait for its turn
	Stalled    time.Duration // time for which the machine itself stood still
}

// Broken reports whether an invariant was broken.
func (r *Report) Broken() bool { return len(r.Violations) > 0 }

func (r *Report) String() string {
	text := fmt.Sprintf("seed %d: %d events, %d requests, %d of them refused, the slowest took %v; %d shared answers, %d changes of them; the machine stood still for %v; %d violations\n",
		r.Config.Seed, len(r.Events), r.Requests, r.Limited, r.Slowest.Round(time.Millisecond), r.Shared, r.Changes, r.Stalled.Round(time.Millisecond), len(r.Violations))
	if r.Broken() {
		for _, e := range r.Events {
			text += e + "\n"
		}
		for _, v := range r.Violations {
			text += v.String() + "\n"
		}
		text += "once more: " + r.Config.Replay() + "\n"
	}
	return text
}

// run is a run in progress. Its methods must be called from the goroutine that called Run.
type run struct {
	*processFleet
	judge     *judge
	load      *load
	limitKeys map[string]string // "GET /route?k=key" → the key in Redis

	broken chan struct{} // closed at a violation that ends the run

	mu     sync.Mutex
	report Report
}

// maxViolations is the number of violations kept: the first ones matter.
const maxViolations = 100

// Run starts a fleet, injects the events of the seed and returns the oracle's findings. If
// something cannot be started, it fails or skips the test. All started processes have ended when
// Run returns.
func Run(tb testing.TB, c Config) *Report {
	tb.Helper()
	if err := c.validate(); err != nil {
		tb.Fatal(err)
	}
	logging.Disable() // the Redis client logs a line for every try
	s := &scope{TB: tb}
	defer s.runCleanups()
	r := &run{report: Report{Config: c}, broken: make(chan struct{})}
	r.processFleet = newFleet(s, &c)
	r.judge = newJudge(r.processFleet, r.recordViolation)
	r.load = newLoad(r.processFleet, r.judge)
	over := r.excuseStart()
	r.start()
	r.findLimitKeys()
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	stop := sync.OnceFunc(func() {
		cancel()
		work.Wait()
		r.load.awaitAnswers()
	})
	s.Cleanup(stop)
	r.load.start(ctx)
	for _, w := range r.watched() {
		work.Go(func() { r.sampleProcess(ctx, r.judge, w) })
	}
	operator := r.operatorConfig()
	work.Go(func() { r.releaseItems(ctx, operator) })
	work.Go(func() { testenv.Every(ctx, 100*time.Millisecond, func(n int) { r.judge.check(n%10 != 0) }) })
	if r.redis.single != nil {
		work.Go(func() { new(writers).followStream(ctx, r) })
		work.Go(func() { r.watchRedis(ctx, r.judge) })
	}
	if r.kafka == nil {
		work.Go(func() { r.waves(ctx) })
	}
	if c.begun != nil {
		c.begun(r, ctx, &work)
	}
	r.sleep(2 * time.Second)
	over()
	r.sleep(recovery)
	r.events()
	stop()
	r.judge.checkFinally()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Requests, r.report.Limited, r.report.Slowest = r.judge.requests, r.judge.limited, r.judge.slowest
	r.report.Shared, r.report.Changes = r.judge.shared, r.judge.changes
	r.report.Stalled = r.judge.stalls.Within(oracle.Span{From: 0, To: r.now()})
	return &r.report
}

// excuseStart excuses failures while processes start, until the returned function is called.
func (r *run) excuseStart() (over func()) {
	var ends []func()
	for i, a := range r.apis {
		a.begin = func() { r.judge.beginSwitch(a, int(a.variant.Load()))() }
		ends = append(ends, r.judge.beginFault(effect{excuses: mayFailRequests | mayStartFresh | mayDecideLocally | mayMissHotKeys | mayNotAnswer, instance: i}))
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

func (r *run) watched() (all []*watched) {
	for _, g := range r.aggregators {
		all = append(all, r.judge.newWatched(&g.child, true))
	}
	for _, a := range r.apis {
		all = append(all, r.judge.newWatched(&a.child, false))
	}
	return all
}

// events makes the events of the plan.
func (r *run) events() {
	if r.c.Scenario == "calm" {
		r.sleep(r.c.Duration)
		return
	}
	origin := r.now()
	for _, e := range plan(r.c) {
		if r.now()-origin > r.c.Duration && len(r.c.Only) == 0 {
			break // starting and ending events took longer than planned
		}
		if r.isBroken() {
			break
		}
		r.logf("%s", r.recordEvent(&e))
		var ends []func()
		begun := r.now()
		for _, k := range e.parts {
			ends = append(ends, k.begin(r, &e))
		}
		r.sleep(e.duration - (r.now() - begun))
		for _, end := range slices.Backward(ends) {
			end()
		}
		r.waitForCalm(e.calm)
	}
}

// waitForCalm lets the calm pass without faults, and more if clients of Kafka must be replaced
// first.
func (r *run) waitForCalm(calm time.Duration) {
	r.sleep(calm)
	for r.judge.isTroubled() && !r.isBroken() {
		for r.judge.isTroubled() && !r.isBroken() {
			r.sleep(100 * time.Millisecond)
		}
		r.sleep(calmLeast)
	}
}

func (r *run) recordEvent(e *plannedFault) string {
	text := e.String() + fmt.Sprintf(", begun at %.2fs", r.now().Seconds())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Events = append(r.report.Events, text)
	return text
}

func (r *run) recordViolation(v oracle.Violation) {
	r.mu.Lock()
	if len(r.report.Violations) < maxViolations {
		r.report.Violations = append(r.report.Violations, v)
	}
	if r.c.Until != "" && strings.HasPrefix(v.Invariant, r.c.Until) && !r.isBroken() {
		close(r.broken)
	}
	r.mu.Unlock()
	r.logf("VIOLATION %s", v)
}

func (r *run) logf(format string, args ...any) { fmt.Fprintf(r.c.Log, format+"\n", args...) }

// isBroken reports whether a violation ends the run early.
func (r *run) isBroken() bool {
	select {
	case <-r.broken:
		return true
	default:
		return false
	}
}

// sleep lets time pass, unless the run ends early.
func (r *run) sleep(d time.Duration) {
	select {
	case <-r.broken:
	case <-r.Context().Done():
		r.Fatal("chaos: interrupted")
	case <-time.After(d):
	}
}

// findLimitKeys finds the key in Redis of each exact limit. The names are hashes, so it requests
// each limit once and sees which key appears.
func (r *run) findLimitKeys() {
	r.limitKeys = make(map[string]string)
	known, err := r.redis.limitKeys(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	for _, fl := range flows() {
		if fl.route != "solo" && !rolling[fl.route].shared {
			continue
		}
		a := r.apis[max(fl.instance, 0)]
		for range 150 { // a key that has to get hot first takes up to a second
			_, _ = ask(r.Context(), r.load.client[a.index], http.MethodGet, "http://"+a.addr+"/"+fl.route+"?k="+fl.key)
			now, err := r.redis.limitKeys(r.Context())
			if err != nil {
				r.Fatal(err)
			}
			if len(now) > len(known) {
				for name := range now {
					if !known[name] {
						r.limitKeys["GET /"+fl.route+"?k="+fl.key] = name
					}
				}
				known = now
				break
			}
			r.sleep(20 * time.Millisecond)
		}
	}
	if len(r.limitKeys) == 0 {
		r.Fatal("chaos: no exact limit has a key in Redis")
	}
}

// limitNames returns the sorted names of the limits in limitKeys.
func (r *run) limitNames() []string { return slices.Sorted(maps.Keys(r.limitKeys)) }

// without returns names except some.
func without(names []string, some ...string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(some, name) })
}

// countLoads returns how often the instances have loaded the published set or checked it for
// changes.
func (r *run) countLoads() (sum float64) {
	for _, a := range r.apis {
		if s, err := a.state(r.Context(), r.load.client[a.index], false); err == nil {
			sum += float64(s.Watcher.Resyncs + s.Watcher.Polls)
		}
	}
	return sum
}
