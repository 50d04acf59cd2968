package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
)

// changing is a fleet in which each process has a file of its own, like a mounted file.
type changing struct {
	*fleet
	apis       []*api
	aggregator string // its file
}

// files returns the files of all processes.
func (c *changing) files() []string {
	all := []string{c.aggregator}
	for _, a := range c.apis {
		all = append(all, a.file)
	}
	return all
}

// writeRules writes other rules to each file, one after the other, and returns their version.
func (c *changing) writeRules(rules string) (version string) {
	c.t.Helper()
	c.rules = rules
	for _, file := range c.files() {
		c.writeConfig(file, c.sections())
		time.Sleep(20 * time.Millisecond) // they differ for a moment
	}
	file, err := config.Load(c.aggregator)
	if err != nil {
		c.t.Fatal(err)
	}
	return file.Rules.Version
}

// agree waits until all members report this version of the rules to an operator, and returns how
// long that took.
func (c *changing) agree(version string, aggregators int) time.Duration {
	c.t.Helper()
	var members []published.Member
	took := within(c.t, patience, "all members with version "+version, func() bool {
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
		defer cancel()
		var err error
		members, err = hotkeys.ListMembers(ctx, c.client, "shop")
		if err != nil {
			return false
		}
		return len(members) == len(c.apis)+aggregators &&
			!slices.ContainsFunc(members, func(m published.Member) bool { return m.RulesVersion != version })
	})
	c.t.Logf("%d members have version %s after %v", len(members), version, took)
	return took
}

// observe looks at all instances until stop is called. stop returns the number of looks, and the
// instances that were once without the member.
func (c *changing) observe(member string) (stop func() (looks int, lost []string)) {
	var mu sync.Mutex
	var lost []string
	var work []func(context.Context)
	looks := 0
	for i, a := range c.apis {
		work = append(work, func(ctx context.Context) {
			testenv.Every(ctx, 20*time.Millisecond, func(int) {
				in, err := a.fetchState(ctx)
				mu.Lock()
				defer mu.Unlock()
				looks++
				if err == nil && !in.holds(member) && len(lost) < 10 {
					lost = append(lost, fmt.Sprintf("instance %d at %s: %v", i, time.Now().Format("15:04:05.000"), in.Hot))
				}
			})
		})
	}
	end := beside(c.t, work...)
	return func() (int, []string) {
		end()
		return looks, lost
	}
}

// changingRules returns a version of the rules that TestRulesChange goes through. The limits of
// products and files never let more than 15 and 8 of a value pass, however long it takes.
func changingRules(hot, limit, products, files string, more ...string) string {
	return fmt.Sprintf(`
  - id: search-terms
    match: {route: "GET /search"}
    by: [q]
    hot: {rate: %s, exit: 50%%, hold: 1s, cool_down: 1s}
    limit: {%s, scope: instance}
  - id: products
    match: {route: "GET /products/{id}"}
    by: ["path:id"]
    limit: {%s, scope: exact}
  - id: files
    match: {route: "GET /files/{name}"}
    by: ["path:name"]
    limit: {%s}
`, hot, limit, products, files) + strings.Join(more, "")
}

const (
	brandsRule = `
  - id: brands
    match: {route: "GET /search"}
    by: [brand]
    hot: 60/2s
    limit: {rate: 1/1h, burst: 4, scope: instance}
`
	leastRule = `
  - id: health
    match: {route: "GET /healthz"}
    limit: {concurrency: 1, scope: exact, wait: 5s}
`
)

// Rules change under load, including thresholds and windows. Rules are added and removed, the
// aggregator restarts in the midst of it, and a file is bad. No request fails, no hot key is
// lost, taken permits stay taken, no permit leaks, and all have the same version soon.
func TestRulesChange(t *testing.T) {
	t.Parallel()
	first := changingRules("100/s", "rate: 10/s, burst: 5", "rate: 1/1h, burst: 10", "rate: 1/1h, burst: 5", leastRule)
	f := newFleet(t, commands(t), first)
	daemon := f.startAggregator()
	c := &changing{f, f.startAPIs(3), daemon.file}
	within(t, patience, "the aggregator ready", daemon.ready)

	phones := flowsAt(c.apis, "/search?q=phone", 3*70, mayBeLimited)
	products := flowsAt(c.apis, "/products/7", 3*15, mayBeLimited)
	files := flowsAt(c.apis, "/files/logo", 3*15, mayBeLimited)
	flows := slices.Concat(phones, products, files, flowsAt(c.apis, "/search?q=tree", 3*8, mustPass), flowsAt(c.apis, "/healthz", 3*10, mustPass))
	// Load the scripts into Redis first. On a busy machine a call that must also send its script
	// may time out, and then each instance decides locally.
	for i := range 5 {
		for _, a := range c.apis {
			_, _ = c.get(fmt.Sprintf("%s/products/other%d", a.url, i))
		}
	}
	stop := c.beginFlows(flows...)
	c.awaitHot(patience, c.apis, phone)
	held := time.Now()
	looked := c.observe(phone)

	slowest := time.Duration(0)
	change := func(aggregators int, rules string) {
		t.Helper()
		took := c.agree(c.writeRules(rules), aggregators)
		slowest = max(slowest, took)
		time.Sleep(300 * time.Millisecond) // load on the rules in force now
	}
	// Another threshold over the same window, other limits, a new rule with a threshold.
	change(1, changingRules("120/s", "rate: 20/s, burst: 8", "rate: 1/1h, burst: 15", "rate: 1/1h, burst: 8", brandsRule, leastRule))
	brands := flowsAt(c.apis, "/search?brand=acme", 3*18, mayBeLimited) // at each less than a third of the threshold
	quiet := c.beginFlows(brands...)
	c.awaitHot(patience, c.apis, "brands GET /search?brand=acme")
	quiet()

	// The aggregator is down while the rules change once more: another window.
	if code := daemon.Stop(); code != 0 {
		t.Errorf("the aggregator ended with %d", code)
	}
	c.writeRules(changingRules("300/3s", "rate: 10/s, burst: 4", "rate: 1/1h, burst: 12", "rate: 1/1h, burst: 3", leastRule))
	time.Sleep(300 * time.Millisecond)
	c.startAggregatorOf(c.aggregator)
	version := c.writeRules(changingRules("300/3s", "rate: 10/s, burst: 4", "rate: 1/1h, burst: 12", "rate: 1/1h, burst: 3", leastRule))
	c.agree(version, 1) // a daemon that starts has its own time
	time.Sleep(2 * time.Second)

	// A bad file changes nothing and is reported.
	for _, file := range c.files() {
		testenv.WriteFile(t, file, "rules: [")
	}
	within(t, patience, "all members tell the bad file", func() bool {
		members, err := hotkeys.ListMembers(t.Context(), c.client, "shop")
		return err == nil && len(members) == 4 && !slices.ContainsFunc(members, func(m published.Member) bool {
			return m.Problem == "" || m.RulesVersion != version
		})
	})

	// A shorter window, and back to the first version.
	change(1, changingRules("90/s", "rate: 15/s, burst: 8", "rate: 1/1h, burst: 9, concurrency: 2, wait: 1s", "rate: 1/1h, burst: 5", leastRule))
	change(1, first)
	looks, lost := looked()
	ended := time.Now()
	stop()

	if slowest > 2*time.Second {
		t.Errorf("versions agreed after %v, want at most 2s", slowest)
	}
	if len(lost) > 0 || looks < 100 {
		t.Errorf("%d looks; hot keys were lost: %s", looks, strings.Join(lost, "\n"))
	}
	n, failed := 0, 0
	for _, fl := range slices.Concat(flows, brands) {
		for _, s := range fl.all() {
			if n++; !fl.good(s) {
				if failed++; failed <= 5 {
					t.Errorf("%s: status %d, error %v", fl.name, s.status, s.err)
				}
			}
		}
	}
	if failed > 0 {
		t.Errorf("%d of %d requests failed", failed, n)
	}
	for _, fl := range phones { // held to the largest quota, 20/s with a burst of 8
		passed, most := count(fl.between(held, ended), http.StatusOK), 8+1+int(20*ended.Sub(held).Seconds())
		if passed > most {
			t.Errorf("%s: %d passed in %v, want at most %d", fl.name, passed, ended.Sub(held), most)
		}
	}
	for _, fl := range files {
		if passed := count(fl.all(), http.StatusOK); passed > 8 || passed < 5 {
			t.Errorf("%s: %d passed, want 5 to 8, the largest burst", fl.name, passed)
		}
	}
	atAll := 0
	for _, fl := range products {
		atAll += count(fl.all(), http.StatusOK)
	}
	if atAll > 15 || atAll < 10 {
		t.Errorf("%d of one product passed at all instances, want 10 to 15, the largest burst", atAll)
	}
	t.Logf("%d requests, %d looks at the hot set, versions agreed after %v at most, in %v", n, looks, slowest, ended.Sub(held))
	for _, a := range c.apis { // one permit for all of them
		if status, _ := c.get(a.url + "/healthz"); status != http.StatusOK {
			t.Errorf("/healthz: %d: a permit has leaked", status)
		}
		if s := a.state().Guard; s.Panics != 0 || s.Displaced != 0 || s.Undecided != 0 {
			t.Errorf("%+v", s)
		}
	}
}
