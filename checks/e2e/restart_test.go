package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// restartWeather is the weather of the packets to all aggregators.
var restartWeather = weather{lost: 0.02, doubled: 0.02, delayed: 1, maxDelay: 60 * time.Millisecond}

// Aggregators restart while keys of all kinds of threshold come and go, on a network that loses
// packets. No hot key is lost, none is invented, and bounds stay true. Keys cool at the same time
// as in a namespace whose aggregator receives the same packets and never restarts.
func TestRestartsOverTheWire(t *testing.T) {
	t.Parallel()
	times := shortRestarts
	if os.Getenv("HOTPARAM_RESTARTS") == "full" {
		times = longRestarts
	}
	for _, wrong := range runRestarts(t, quickCommands(t), times) {
		for i, text := range wrong {
			if i == 10 {
				t.Errorf("and %d more", len(wrong)-i)
				break
			}
			t.Error(text)
		}
	}
}

// restartAggregator is one aggregator of a namespace over its restarts: its processes have the
// same file.
type restartAggregator struct {
	*restartSeen
	f    *fleet
	file string
	addr string
	*daemon
}

// writeRulesFile writes the rules into the file.
func (a *restartAggregator) writeRulesFile(rules string) {
	a.f.t.Helper()
	lease := strings.HasPrefix(a.name, "taken")
	text := fmt.Sprintf("namespace: %s\naggregator: {listen: %q, redis: %q, http: \"127.0.0.1:0\", memory: 64MB, lease: %v}\nrules:%s",
		a.name, a.addr, a.f.redisURL, lease, rules)
	testenv.WriteFile(a.f.t, a.file, text)
}

// launch starts a process. awaitUp waits until it is up.
func (a *restartAggregator) launch() {
	a.f.t.Helper()
	a.daemon = &daemon{Process: a.f.startProgram(a.f.bin.hotparam, "aggregator", "--config", a.file), f: a.f}
}

func (a *restartAggregator) awaitUp() {
	a.f.t.Helper()
	a.url = "http://" + a.WaitFor(`aggregator is up.* http=(\S+)`)[1]
}

// endProcess ends the process at once, or in order, and returns the time of its end.
func (a *restartAggregator) endProcess(signal syscall.Signal) (down int64) {
	a.f.t.Helper()
	down = time.Now().UnixNano()
	a.Signal(signal)
	if code := a.Wait(); signal == syscall.SIGTERM && code != 0 {
		a.f.t.Errorf("%s ended with exit code %d", a.name, code)
	}
	return down
}

// addLife records that the process publishes after another went down.
func (a *restartAggregator) addLife(down int64) {
	now := time.Now().UnixNano()
	a.restartSeen.lives = append(a.restartSeen.lives, restartLife{down, now, now})
}

// restartFleet is a set of aggregators in several namespaces that receive the same packets.
type restartFleet struct {
	*fleet
	times restartTimes
	begin int64

	control, killed, ended, reloaded *restartAggregator
	taken                            []*restartAggregator // one publishes, the other stands by
	all                              []*restartAggregator
	reload                           [2]int64
}

func newRestartFleet(t *testing.T, bin programs, times restartTimes) *restartFleet {
	t.Helper()
	x := &restartFleet{fleet: newFleet(t, bin, rulesYAML(times.rules(), false)), times: times}
	dir := t.TempDir()
	add := func(seen *restartSeen) *restartAggregator {
		a := &restartAggregator{restartSeen: seen, f: x.fleet, addr: fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))}
		a.file = filepath.Join(dir, fmt.Sprintf("%s-%d.yaml", seen.name, len(x.all)))
		a.writeRulesFile(x.rules)
		a.launch()
		x.all = append(x.all, a)
		return a
	}
	x.control, x.killed, x.ended, x.reloaded = add(newSeen("control")), add(newSeen("killed")), add(newSeen("ended")), add(newSeen("reloaded"))
	taken := newSeen("taken")
	x.taken = []*restartAggregator{add(taken), add(taken)}
	for _, a := range x.all {
		a.awaitUp()
	}
	for _, a := range x.all[:len(x.all)-1] {
		a.addLife(0)
	}
	within(t, patience, "one publishes, the other stands by", func() bool {
		if x.taken[0].standsBy() {
			slices.Reverse(x.taken)
		}
		return x.taken[1].standsBy() && x.taken[0].ready()
	})
	return x
}

// sleep waits for a pane of the plan.
func (x *restartFleet) sleep(pane int64) {
	time.Sleep(time.Until(time.Unix(0, x.begin+pane*lossWidth)))
}

// takeOver waits until the standby publishes.
func (x *restartFleet) takeOver(down, heard int64) {
	x.t.Helper()
	slices.Reverse(x.taken)
	within(x.t, patience, "the one that stood by publishes", x.taken[0].publishes)
	x.taken[0].restartSeen.lives = append(x.taken[0].restartSeen.lives, restartLife{down, time.Now().UnixNano(), heard})
}

// run restarts the aggregators and reloads their rules as planned.
func (x *restartFleet) run() {
	x.t.Helper()
	x.sleep(x.times.First)
	standby := x.control.restartSeen.lives[0].heard
	killed, holder := x.killed.endProcess(syscall.SIGKILL), x.taken[0].endProcess(syscall.SIGKILL)
	x.killed.launch()
	ended := x.ended.endProcess(syscall.SIGTERM)
	x.ended.launch()
	reloaded := x.reloaded.endProcess(syscall.SIGKILL)
	x.reloaded.launch()
	for a, down := range map[*restartAggregator]int64{x.killed: killed, x.ended: ended, x.reloaded: reloaded} {
		a.awaitUp()
		a.addLife(down)
	}
	x.sleep(x.times.reload())
	x.reload[0] = time.Now().UnixNano()
	for _, a := range x.all {
		a.writeRulesFile(rulesYAML(x.times.rules(), true))
	}
	for _, a := range x.all {
		if a != x.taken[0] { // it is dead
			a.Signal(syscall.SIGHUP)
		}
	}
	x.reload[1] = time.Now().UnixNano()
	x.takeOver(holder, standby)
	x.taken[1].launch()
	x.taken[1].awaitUp()
	standby = time.Now().UnixNano()

	x.sleep(x.times.Second)
	killed, ended = x.killed.endProcess(syscall.SIGKILL), x.ended.endProcess(syscall.SIGKILL)
	x.ended.launch()
	stopped := time.Now().UnixNano()
	x.taken[0].Signal(syscall.SIGSTOP)
	x.ended.awaitUp()
	x.ended.addLife(ended)
	ended = x.ended.endProcess(syscall.SIGKILL)
	x.ended.launch()
	x.ended.awaitUp()
	x.ended.addLife(ended)
	x.takeOver(stopped, standby)
	x.sleep(x.times.Second + 22)
	x.killed.launch()
	x.killed.awaitUp()
	x.killed.addLife(killed)
	x.sleep(x.times.Second + 35)
	x.taken[1].Signal(syscall.SIGCONT)
}

// runRestarts runs a fleet and returns its faults by kind.
func runRestarts(t *testing.T, bin programs, times restartTimes) map[string][]string {
	t.Helper()
	x := newRestartFleet(t, bin, times)
	var targets []string
	var seen []*restartSeen
	for _, a := range x.all {
		targets = append(targets, a.addr)
		if !slices.Contains(seen, a.restartSeen) {
			seen = append(seen, a.restartSeen)
		}
	}
	followed := []*restartAggregator{x.killed, x.ended, x.taken[0]}
	w := restartWeather
	w.seed = rand.Uint64()
	t.Logf("seed %d", w.seed)
	senders := startSenders(t, sender{Instances: len(followed), Restarts: &times}, w, func(i int, addr string) string {
		follower := *followed[i]
		follower.file, follower.addr = filepath.Join(t.TempDir(), "sender.yaml"), addr
		follower.writeRulesFile(x.rules)
		return follower.file
	}, targets...)
	plan := times.plan()
	x.begin = senders.beginPlan().UnixNano()
	stop := watchRestarts(t, x.client, plan, seen)
	x.run()
	x.sleep(times.Panes)
	senders.awaitDone()
	reads := stop()
	end := time.Now().UnixNano()

	truth := senders.endSenders(plan)
	j := newRestartJudge(t, newRestartTruth(plan, truth, x.reload), x.begin, end, reads, x.control.restartSeen)
	for _, s := range seen {
		j.judgeNamespace(s)
	}
	j.log(seen, len(reads))
	return j.wrong
}

// log logs the number of checks, and how late keys cooled.
func (j *restartJudge) log(seen []*restartSeen, reads int) {
	lost, all := j.countLost()
	j.t.Logf("%d of %d packets lost, %d reads; bounds: %d of windows that were over, %d of others, %d without a high count; held up by up to %v",
		lost, all, reads, j.closed, j.far, j.unknown, time.Duration(j.maxLateness()))
	for _, x := range seen {
		left, kept := 0, make([]int, len(x.lives))
		for _, s := range x.stays {
			if s.left > 0 {
				left++
			}
			for i, l := range x.lives {
				if s.from < l.down && s.endWithin(j.end) > l.up {
					kept[i]++
				}
			}
		}
		j.t.Logf("%s: %d times hot, %d cooled; kept over each restart: %d", x.name, len(x.stays), left, kept[1:])
		if len(kept) > 1 && slices.Min(kept[1:]) < 10 {
			j.wrong[showsNothing] = append(j.wrong[showsNothing], x.name+": nothing is shown: too few keys were hot before and after a restart")
		}
	}
	if j.closed < 3*j.far || j.closed < 1000 {
		j.wrong[showsNothing] = append(j.wrong[showsNothing],
			fmt.Sprintf("%d bounds can be of a window that was over, and %d cannot: nothing is shown", j.closed, j.far))
	}
	for kind, n := range j.coolings {
		j.t.Logf("of the keys held by %s, %d cooled by the snapshot, %d when a window was heard whole", kind, n.bySnapshot, n.byWhole)
		if n.bySnapshot < 3*n.byWhole {
			j.wrong[wrongCool] = append(j.wrong[wrongCool], "most keys held by "+kind+" cooled when a window was heard whole, and not by the snapshot")
		}
	}
	j.t.Logf("keys that an aggregator could find become hot up to %v later than without a restart", j.latest(seen))
	slices.SortFunc(j.cooled, func(a, b restartCooling) int { return int(b.late - a.late) })
	worst := make(map[time.Duration]int)
	for _, c := range j.cooled {
		if c.late > time.Second {
			if worst[c.window]++; worst[c.window] == 1 {
				j.t.Logf("keys of windows of %v cool up to %v later than without a restart (%s)", c.window, c.late.Round(10*time.Millisecond), c.reason)
			}
		}
	}
	j.t.Logf("cooled more than a second later than without a restart, by window: %v of %d", worst, len(j.cooled))
}

// latest returns the longest time by which a key became hot later than in the control.
func (j *restartJudge) latest(seen []*restartSeen) (late time.Duration) {
	for _, x := range seen {
		for _, s := range x.stays {
			for _, c := range j.control.stays {
				if c.overlaps(s) {
					late = max(late, time.Duration(s.from-c.from))
				}
			}
		}
	}
	return late
}
