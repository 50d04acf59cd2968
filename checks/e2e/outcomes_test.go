package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// listedKey is what tests read of a key that "hotparam list --json" prints.
type listedKey struct {
	Scope    string
	Outcomes *outcomes
	Admitted *struct {
		PerSecond float64 `json:"per_second"`
		AtLeast   bool    `json:"at_least"`
		Allowed   float64 `json:"allowed_per_second"`
		Limits    int
	}
}

type outcomes struct{ Passed, Refused, Waited, Served int64 }

// What became of a hot key's requests is added up over all instances, and is what the instances have
// counted: after one had no Redis for a while and its counts were lost, after one has ended and
// another has started, and after the aggregator was killed. It never goes back.
func TestOutcomesOfAllInstances(t *testing.T) {
	t.Parallel()
	f := newFleet(t, commands(t), `
  - id: search-terms
    match: {route: "GET /search"}
    by: [q]
    hot: {rate: 100/s, exit: 1%, hold: 5m, cool_down: 0s}
    limit: {rate: 10/s, burst: 5, scope: instance}
`)
	d := f.startAggregator()
	relay := testenv.NewRelay(t, f.redis.Addr())
	nowhere := fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))
	apis := append(f.startAPIs(2), f.startAPIOver(f.sectionsAt(f.statsd, relay.Addr())))
	f.sendLines("shop.search-terms.hot_param.GET%20/search?q=phone:150|c", 1)
	f.awaitHot(patience, apis, phone)

	var before, highest outcomes // of instances that have ended; the most that was listed
	list := func() outcomes {
		var keys []listedKey
		f.operate(&keys, "list")
		if len(keys) != 1 || keys[0].Outcomes == nil {
			return outcomes{}
		}
		got := *keys[0].Outcomes
		if got.Passed < highest.Passed || got.Refused < highest.Refused {
			t.Errorf("the sum went back from %+v to %+v", highest, got)
		}
		highest = got
		return got
	}
	counted := func(a *api) (n outcomes) {
		for _, h := range a.state().Hot {
			if h.Key.String() == phone {
				n.Passed, n.Refused = h.Passed, h.Refused
			}
		}
		return n
	}
	agree := func(when string) {
		t.Helper()
		want := before
		for _, a := range apis {
			n := counted(a)
			want.Passed, want.Refused = want.Passed+n.Passed, want.Refused+n.Refused
		}
		var got outcomes
		took := within(t, patience, when+": the sum", func() bool { got = list(); return got == want })
		t.Logf("%s: %+v after %v", when, got, took)
		if got.Refused == 0 || got.Passed == 0 {
			t.Errorf("%s: %+v", when, got)
		}
	}
	// flood sends requests to all instances while something happens.
	flood := func(happens func()) {
		var urls []string
		for _, a := range apis {
			urls = append(urls, a.search("phone"))
		}
		stop := f.hammer(1, urls...)
		var watching sync.WaitGroup
		over := make(chan struct{})
		watching.Go(func() {
			for {
				list()
				select {
				case <-over:
					return
				case <-time.After(200 * time.Millisecond):
				}
			}
		})
		time.Sleep(1500 * time.Millisecond)
		happens()
		time.Sleep(1500 * time.Millisecond)
		close(over)
		watching.Wait()
		stop()
	}

	flood(func() {})
	agree("at first")
	flood(func() {
		relay.Set(testenv.LinkCut)
		time.Sleep(3 * time.Second)
		relay.Set(testenv.LinkUp)
	})
	agree("after an instance had no Redis")
	flood(func() {})
	ended := apis[0]
	n := counted(ended)
	before.Passed, before.Refused = n.Passed, n.Refused
	if code := ended.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	apis[0] = f.startAPIOver(f.sectionsAt(nowhere, f.redis.Addr())) // all of its packets are lost
	f.awaitHot(patience, apis, phone)
	flood(func() {})
	agree("after an instance has restarted")
	// While its last heartbeat expires, a change of aggregators loses some: docs/design/redis.md.
	within(t, patience, "the outcomes of the ended instance apart", func() bool {
		info := f.client.HGet(t.Context(), f.layout.Info, phone).Val()
		return strings.Contains(info, fmt.Sprintf(`"gone":[%d,%d,`, before.Passed, before.Refused))
	})
	flood(func() {
		d.Kill()
		d = f.startAggregator()
		within(t, patience, "the next aggregator", d.ready)
	})
	agree("after the aggregator has restarted")
}
