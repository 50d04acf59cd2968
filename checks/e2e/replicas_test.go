package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
)

// replicas is a fleet with several StatsD aggregators, to which instances send by
// an address list.
type replicas struct {
	*fleet
	addrs  []string // where the aggregators listen
	spread string
}

func newReplicas(t *testing.T, spread string) *replicas {
	t.Helper()
	f := newFleet(t, quickCommands(t), searchRule)
	r := &replicas{fleet: f, spread: spread}
	for range 2 {
		r.addrs = append(r.addrs, fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t)))
	}
	f.sections = func() string {
		return fmt.Sprintf(`aggregator: {redis: %q, http: "127.0.0.1:0", memory: %s, lease: %v}
statsd: {addresses: ["%s"], spread: %s}`, f.redisURL, f.memory, spread == "all", strings.Join(r.addrs, `", "`), spread)
	}
	return r
}

// aggregator starts the aggregator with a number.
func (r *replicas) aggregator(i int) *daemon {
	r.t.Helper()
	arguments := []string{"--listen", r.addrs[i]}
	if r.spread == "hash" {
		arguments = append(arguments, "--name", strconv.Itoa(i))
	}
	return r.startAggregator(arguments...)
}

func (d *daemon) standsBy() bool { return d.metric("hotparam_standby") == 1 && d.ready() }

func (d *daemon) publishes() bool { return d.metric("hotparam_takeovers_total") > 0 && !d.standsBy() }

// undisturbed checks all that was ever published: nothing cooled, and no holder wrote after its
// successor.
func (r *replicas) undisturbed() {
	r.t.Helper()
	events, err := r.client.XRange(r.t.Context(), r.layout.Events, "-", "+").Result()
	if err != nil {
		r.t.Fatal(err)
	}
	last := int64(0)
	for _, e := range events {
		epoch, err := strconv.ParseInt(e.Values["epoch"].(string), 10, 64)
		if err != nil || epoch < last {
			r.t.Errorf("epoch %v wrote after epoch %d", e.Values["epoch"], last)
		}
		last = epoch
		c, err := published.ParsePush([]byte(e.Values["change"].(string)))
		if err != nil {
			r.t.Fatal(err)
		}
		if len(c.Cool) > 0 {
			r.t.Errorf("cooled by mistake: %v", c.Cool)
		}
	}
}

// Both aggregators receive all counts, and one publishes. When it is killed or paused, the other
// takes its place within two seconds. A key that becomes hot just then is found, hot keys stay
// hot, and no request fails.
func TestReplicatedAggregators(t *testing.T) {
	t.Parallel()
	r := newReplicas(t, "all")
	holder := r.aggregator(0)
	within(t, patience, "the first publishes", holder.publishes)
	other := r.aggregator(1)
	within(t, patience, "the second stands by", other.standsBy)
	apis := r.startAPIs(2)
	load := r.startLoad(apis)
	r.awaitWell(patience, apis, phone)
	load.calm()

	var fresh []*flow
	// takenOver begins a flow of a new term and waits until it is in force.
	takenOver := func(term, fault string) {
		t.Helper()
		flows := flowsAt(apis, "/search?q="+term, phoneRate, mayBeLimited)
		fresh = append(fresh, flows...)
		r.beginFlows(flows...)
		lost := false
		took := within(t, patience, term+" in force on all instances", func() bool {
			holds := all(apis, func(in instance) bool { return in.holds(phone) })
			if !holds && !lost {
				lost = true
				t.Errorf("%s: an instance no longer holds to phone", fault)
			}
			return holds && all(apis, func(in instance) bool { return in.holds(searchKey(term)) })
		})
		t.Logf("%s: the hot set is right after %v", fault, took)
		if took > 2*time.Second {
			t.Errorf("%s: the hot set is right after %v, want 2s at most", fault, took)
		}
	}
	holder.Kill()
	takenOver("boat", "killed")
	if !other.publishes() {
		t.Error("the second has not taken over")
	}

	// The first is back as standby. The second is paused, and continues later.
	holder, other = other, r.aggregator(0)
	within(t, patience, "the one that is back stands by", other.standsBy)
	load.calm() // it has counted for a window
	holder.Signal(syscall.SIGSTOP)
	takenOver("ship", "stopped")
	holder.Signal(syscall.SIGCONT)
	within(t, recovery, "the one that wakes up stands by", holder.standsBy)
	load.calm()

	// On SIGTERM it releases the lease at once.
	other.Signal(syscall.SIGTERM)
	if code := other.Wait(); code != 0 {
		t.Errorf("exit code after SIGTERM: %d, want 0", code)
	}
	took := within(t, recovery, "the first publishes again", func() bool { return !holder.standsBy() })
	t.Logf("let go: taken over after %v", took)
	load.calm()
	r.undisturbed()
	mustBeGood(t, append(load.flows, fresh...))
}

// Each aggregator has a part of the keys. When one is killed, keys of the other are still found.
// Its own keys are found again when it is back.
func TestSharingAggregators(t *testing.T) {
	t.Parallel()
	r := newReplicas(t, "hash")
	daemons := []*daemon{r.aggregator(0), r.aggregator(1)}
	apis := r.startAPIs(2)
	within(t, patience, "both are ready", func() bool { return daemons[0].ready() && daemons[1].ready() })
	// crowd makes a term hot, and waits until all instances enforce it if found is true.
	crowd := func(term string, found bool) {
		t.Helper()
		for i := range 2 * threshold {
			if a := r.ask(apis[i%2].search(term)); a.status != http.StatusOK && !a.refused() {
				t.Fatalf("%s: status %d, %v", term, a.status, a.err)
			}
		}
		if found {
			r.awaitHot(patience, apis, searchKey(term))
		}
	}
	type entry struct {
		Owner        string
		Since, Until int64
	}
	read := func(term string) (e entry) {
		t.Helper()
		info, err := r.client.HGet(t.Context(), r.layout.Info, searchKey(term)).Result()
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(info), &e); err != nil {
			t.Fatal(err)
		}
		return e
	}
	byOwner := make(map[string]string) // a term of each
	for i := 0; len(byOwner) < 2; i++ {
		if i == 30 {
			t.Fatalf("30 terms are all published by %v", byOwner)
		}
		term := fmt.Sprint("term", i)
		crowd(term, true)
		byOwner[read(term).Owner] = term
	}
	zero, one := byOwner["statsd-0"], byOwner["statsd-1"]
	if zero == "" || one == "" {
		t.Fatalf("terms by owner: %q", byOwner)
	}
	daemons[1].Kill()
	before := read(one)
	within(t, patience, "the living one's term has cooled", func() bool {
		return r.client.ZScore(t.Context(), r.layout.Hot, searchKey(zero)).Err() != nil
	})
	crowd(zero, true)
	crowd(one, false) // no aggregator counts it
	r.aggregator(1)
	within(t, patience, "the next one holds the dead one's term", func() bool { return read(one).Until > before.Until })
	if held := read(one); held.Owner != before.Owner || held.Since != before.Since {
		t.Errorf("the dead one's term is %+v, was %+v", held, before)
	}
}
