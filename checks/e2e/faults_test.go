package e2e

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// No outage makes a request fail or wait, and everything works again without help within recovery
// of the outage's end.
const recovery = 3 * time.Second

// faulty is a fleet under load in which phone is hot, ready for a fault.
type faulty struct {
	*fleet
	daemon *daemon
	apis   []*api
	load   *load
	calm   time.Time // the load has been calm since
	fault  time.Time
}

// upset starts the parts, lets phone become hot and begins the fault.
func upset(f *fleet, apis []*api) *faulty {
	f.t.Helper()
	u := &faulty{fleet: f, daemon: f.startAggregator(), apis: apis}
	u.load = f.startLoad(apis)
	f.awaitWell(patience, apis, phone)
	u.calm = u.load.calm()
	u.fault = time.Now()
	return u
}

// recovered waits until everything works again, and checks all requests up to then.
func (u *faulty) recovered() {
	u.t.Helper()
	took := u.awaitWell(recovery, u.apis, phone)
	u.t.Logf("well again after %v", took)
	within(u.t, recovery, "the aggregator ready", u.daemon.ready)
	u.load.calm()
	u.load.checkLatency(u.calm, u.fault)
}

// faded waits until no instance enforces a limit any longer. Entries expire 5s after the last
// heartbeat that the instance received.
func (u *faulty) faded() {
	u.t.Helper()
	u.t.Logf("limits faded after %v", u.awaitCool(7*time.Second, u.apis))
}

func TestRedisIsKilledAndComesBackEmpty(t *testing.T) {
	t.Parallel()
	f := newFleet(t, quickCommands(t), searchRule)
	u := upset(f, f.startAPIs(2))
	f.redis.Kill()
	within(t, 2*time.Second, "the aggregator not ready", func() bool { return !u.daemon.ready() })
	u.faded()
	f.redis.Restart()
	u.recovered()
}

// A Redis that hangs is worse than a dead one: its connections stay open and never answer.
func TestRedisHangs(t *testing.T) {
	t.Parallel()
	f := newFleet(t, quickCommands(t), searchRule)
	u := upset(f, f.startAPIs(2))
	f.redis.Pause()
	within(t, 4*time.Second, "all know that they are not connected", func() bool {
		return !u.daemon.ready() && all(u.apis, func(in instance) bool { return !in.Watcher.Connected })
	})
	u.faded()
	f.redis.Resume()
	u.recovered()
}

func TestAggregatorIsKilled(t *testing.T) {
	t.Parallel()
	f := newFleet(t, quickCommands(t), searchRule)
	u := upset(f, f.startAPIs(2))
	var info struct{ Until int64 }
	if err := json.Unmarshal([]byte(f.client.HGet(t.Context(), f.layout.Info, phone).Val()), &info); err != nil {
		t.Fatal(err)
	}
	u.daemon.Kill()
	u.faded()
	// Redis runs on this machine, so its clock is ours.
	if late := time.Since(time.UnixMilli(info.Until)); late > 0 {
		t.Errorf("limits faded %v after the end that Redis named", late)
	}
	u.daemon = f.startAggregator()
	u.recovered()

	// On SIGTERM it processes the counts that have arrived and exits with 0.
	u.daemon.Signal(syscall.SIGTERM)
	if code := u.daemon.Wait(); code != 0 {
		t.Errorf("exit code after SIGTERM: %d, want 0", code)
	}
	u.daemon.WaitFor("aggregator has drained")
}

// A key with a long window stays hot whether the aggregator is killed or asked to end. The next
// one takes the key over, and its high count is unknown at first.
func TestHotKeyOfALongWindowOutlivesTheAggregator(t *testing.T) {
	t.Parallel()
	f := newFleet(t, quickCommands(t), strings.Replace(searchRule, "100/s", "100/1m", 1))
	type entry struct {
		Since, Until int64
		High         *int64
	}
	read := func() (e entry, ok bool) {
		err := json.Unmarshal([]byte(f.client.HGet(t.Context(), f.layout.Info, phone).Val()), &e)
		return e, err == nil
	}
	daemon := f.startAggregator()
	f.sendLines("shop.search-terms.hot_param.GET%20/search?q=phone:150|c", 1)
	within(t, patience, "phone is hot", func() bool { _, ok := read(); return ok })
	before, _ := read()
	for _, end := range []func(){func() { daemon.Kill() }, func() { daemon.Signal(syscall.SIGTERM); daemon.Wait() }} {
		end()
		last, _ := read()
		daemon = f.startAggregator()
		took := within(t, patience, "the next aggregator keeps phone hot", func() bool {
			e, ok := read()
			return ok && e.Until > last.Until
		})
		t.Logf("the next aggregator keeps phone hot after %v", took)
		if e, _ := read(); e.Since != before.Since || e.High != nil {
			t.Errorf("published is %+v, want it since %d, with a high count that is unknown", e, before.Since)
		}
	}
}

// The link between the instances and Redis breaks, then swallows all that is sent.
func TestLinkToRedis(t *testing.T) {
	t.Parallel()
	for _, fault := range []struct {
		name  string
		state testenv.LinkState
	}{{"cut", testenv.LinkCut}, {"silent", testenv.LinkSilent}} {
		t.Run(fault.name, func(t *testing.T) {
			f := newFleet(t, quickCommands(t), searchRule)
			link := testenv.NewRelay(t, f.redis.Addr())
			u := upset(f, []*api{f.startAPIOver(f.sectionsAt(f.statsd, link.Addr())), f.startAPI()})
			behind := u.apis[:1]
			link.Set(fault.state)
			within(t, 4*time.Second, "the instance knows that it is not connected", func() bool {
				return all(behind, func(in instance) bool { return !in.Watcher.Connected })
			})
			t.Logf("limits faded after %v", f.awaitCool(7*time.Second, behind))
			if in := u.apis[1].state(); !in.holds(phone) {
				t.Error("the instance whose link is good holds to nothing")
			}
			link.Set(testenv.LinkUp)
			u.recovered()
		})
	}
}

// A link that is silent for a moment leaves dead connections behind, without an error on either
// side. A key that becomes hot in that time must still be known soon after.
func TestLinkToRedisIsSilentForAMoment(t *testing.T) {
	t.Parallel()
	f := newFleet(t, quickCommands(t), searchRule)
	link := testenv.NewRelay(t, f.redis.Addr())
	u := upset(f, []*api{f.startAPIOver(f.sectionsAt(f.statsd, link.Addr())), f.startAPI()})
	behind := u.apis[:1]
	failures := func() uint64 { return behind[0].state().Watcher.Errors }
	before := failures()
	link.Set(testenv.LinkSilent)
	within(t, 4*time.Second, "a call that fails", func() bool { return failures() > before })
	f.sendLines("shop.search-terms.hot_param.GET%20/search?q=boat:150|c", 1)
	link.Set(testenv.LinkUp)
	before = failures()
	f.awaitHot(recovery, u.apis, searchKey("boat"))

	// The dead subscription is replaced, and changes are pushed again.
	took := within(t, 2*recovery, "the dead subscription is given up", func() bool { return failures() > before })
	within(t, recovery, "connected", func() bool { return behind[0].state().Watcher.Connected })
	pushes := behind[0].state().Watcher.Pushes
	f.sendLines("shop.search-terms.hot_param.GET%20/search?q=ship:150|c", 1)
	within(t, recovery, "a push", func() bool { return behind[0].state().Watcher.Pushes > pushes })
	t.Logf("subscribed again after %v", took)
	u.recovered()
}

// Counts of all instances are lost on the link to the aggregator.
func TestLinkToAggregator(t *testing.T) {
	t.Parallel()
	f := newFleet(t, quickCommands(t), searchRule)
	link := testenv.NewUDPRelay(t, nil, f.statsd)
	behind := f.sectionsAt(link.Addr(), f.redis.Addr())
	u := upset(f, []*api{f.startAPIOver(behind), f.startAPIOver(behind)})
	link.SetCut(true)
	u.faded() // no counts arrive, so phone cools
	link.SetCut(false)
	u.recovered()
	if lost := u.daemon.metric("hotparam_statsd_lost_packets_total"); lost == 0 {
		t.Error("packets were lost, and hotparam_statsd_lost_packets_total is 0")
	}
}

// The parts may start in any order. Here each starts before the parts that it needs.
func TestAnyOrderOfStart(t *testing.T) {
	t.Parallel()
	f := newFleet(t, commands(t), searchRule)
	f.redis.Kill()
	apis := f.startAPIs(2)
	load := f.startLoad(apis)
	load.calm()
	within(t, patience, "counts that could not be sent are counted as dropped", func() bool {
		return all(apis, func(in instance) bool { return in.Collector.Dropped.SendError > 0 })
	})
	daemon := f.startAggregator()
	within(t, patience, "the aggregator counts", func() bool { return daemon.metric("hotparam_hot_keys") == 1 })
	if daemon.ready() {
		t.Error("the aggregator is ready without Redis")
	}
	f.redis.Restart()
	f.awaitWell(recovery, apis, phone)
	within(t, recovery, "the aggregator ready", daemon.ready)
	load.stop()
	mustBeGood(t, load.flows)
}
