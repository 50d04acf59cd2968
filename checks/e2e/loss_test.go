package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// The fates of packets. Some arrive twice, some late and after later ones.
var (
	goodWeather = weather{doubled: 0.02, delayed: 0.1, maxDelay: 20 * time.Millisecond}
	losses      = []float64{0.002, 0.02, 0.05}
)

// On a network that loses packets the same keys are found as without loss, and no others. Bounds
// hold and are narrow enough to be useful, and all keys cool in time. Instances are processes
// that log their counts, and Redis shows the published keys.
func TestLossOverTheWire(t *testing.T) {
	t.Parallel()
	if os.Getenv("HOTPARAM_LOSS") != "full" {
		lossRuns(t, 10, 130, []float64{0.05})
		return
	}
	for _, instances := range []int{10, 100} {
		t.Run(fmt.Sprintf("%d instances", instances), func(t *testing.T) { lossRuns(t, instances, 300, losses) })
	}
}

func lossRuns(t *testing.T, instances int, panes int64, losses []float64) {
	t.Helper()
	var lossless *lossRun
	t.Run("no loss", func(t *testing.T) {
		lossless = runLoss(t, instances, panes, goodWeather)
		lossless.judgeRun(t)
	})
	if lossless == nil {
		return // skipped
	}
	for _, lost := range losses {
		t.Run(fmt.Sprintf("%g%% lost", 100*lost), func(t *testing.T) {
			w := goodWeather
			w.lost = lost
			r := runLoss(t, instances, panes, w)
			r.judgeRun(t)
			r.compare(t, lossless)
		})
	}
}

// A reader of Redis finds a hot key's bounds narrow at nearly any time, and true, although all
// packets are delayed and some are lost. Each instance counts much of a key, so a lost packet
// holds more counts than the bounds may be apart.
func TestPublishedBoundsAreNarrow(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes half a minute: left out with -short")
	}
	for _, c := range []struct{ lost, most float64 }{{0.01, 0.01}, {0.05, 0.03}} {
		t.Run(fmt.Sprintf("%g%% lost", 100*c.lost), func(t *testing.T) {
			t.Parallel()
			r := runLoss(t, 2, 200, weather{lost: c.lost, doubled: 0.02, delayed: 1, maxDelay: 60 * time.Millisecond})
			r.judgeReads(t, c.most)
		})
	}
}

// lossFleet is a set of running senders and their logs.
type lossFleet struct {
	t       *testing.T
	logs    []string
	relays  []*lossRelay
	senders []*testenv.Process
	begins  []func(at time.Time)
}

// startSenders starts instances like the given one, each with a relay with the weather between it
// and the targets. config writes the file of an instance that sends to an address.
func startSenders(t *testing.T, like sender, w weather, config func(instance int, addr string) string, targets ...string) *lossFleet {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, x := t.TempDir(), &lossFleet{t: t}
	for i := range like.Instances {
		relay := &lossRelay{weather: w, random: rand.New(rand.NewPCG(uint64(like.Instances)+w.seed, uint64(i)))}
		link := testenv.NewUDPRelay(t, relay.pass, targets...)
		t.Cleanup(relay.flight.Wait)
		s := like
		s.Config, s.Log, s.Instance = config(i, link.Addr()), filepath.Join(dir, fmt.Sprint("sender-", i)), i
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), senderVariable+"="+string(text), "GOMAXPROCS=1", "GORACE=atexit_sleep_ms=0") // else each takes a second more to end
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		x.senders, x.logs, x.relays = append(x.senders, testenv.Start(t, cmd)), append(x.logs, s.Log), append(x.relays, relay)
		x.begins = append(x.begins, func(at time.Time) {
			if _, err := fmt.Fprintln(stdin, at.UnixNano()); err != nil {
				t.Fatal(err)
			}
		})
	}
	for _, s := range x.senders {
		s.WaitFor("^sender is up$")
	}
	return x
}

// beginPlan starts the plan and returns the time of its start.
func (x *lossFleet) beginPlan() time.Time {
	at := time.Now().Add(1500 * time.Millisecond).Truncate(lossPane)
	for _, begin := range x.begins {
		begin(at)
	}
	return at
}

// awaitDone waits until the plan is done.
func (x *lossFleet) awaitDone() {
	x.t.Helper()
	for _, s := range x.senders {
		s.WaitFor("^sender is done$")
	}
}

// endSenders ends the senders and returns their counts.
func (x *lossFleet) endSenders(plan *lossPlan) *lossTruth {
	x.t.Helper()
	for _, s := range x.senders {
		s.Signal(syscall.SIGTERM)
	}
	for _, s := range x.senders {
		if code := s.Wait(); code != 0 {
			x.t.Errorf("a sender ended with exit code %d", code)
		}
	}
	return newLossTruth(x.t, plan, x.logs, x.relays)
}

// runLoss runs a fleet of senders through the weather.
func runLoss(t *testing.T, instances int, panes int64, w weather) *lossRun {
	t.Helper()
	f := newFleet(t, quickCommands(t), rulesYAML(lossRules, false))
	daemon := f.startAggregator()
	seen, up := newSeen("shop"), time.Now().UnixNano()
	seen.lives = []restartLife{{0, up, up}}
	config := func(_ int, addr string) string { return f.file(f.sectionsAt(addr, f.redis.Addr())) }
	senders := startSenders(t, sender{Instances: instances, Panes: panes}, w, config, f.statsd)
	plan, begin := newLossPlan(panes), senders.beginPlan()
	stop := watchRestarts(t, f.client, plan, []*restartSeen{seen})
	time.Sleep(time.Until(begin.Add(time.Duration(panes) * lossPane)))
	senders.awaitDone()
	time.Sleep(time.Second)
	reads, end := stop(), time.Now().UnixNano()
	if lost := daemon.metric("hotparam_statsd_lost_packets_total") - daemon.metric("hotparam_statsd_recovered_packets_total"); lost > 0 && w.lost == 0 {
		t.Fatalf("the machine lost %v packets: nothing is shown", lost)
	}
	truth := newRestartTruth(plan, senders.endSenders(plan), [2]int64{})
	return &lossRun{newRestartJudge(t, truth, begin.UnixNano(), end, reads, seen), seen}
}
