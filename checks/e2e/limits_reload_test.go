package e2e

import (
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/hotparam/hotparam/config"
)

// Each step has another rate, another algorithm or another number of permits than the one before.
var reloads = []struct {
	limit   string
	permits int
	passes  int // requests of a new key that pass, or 0 if more than are sent
}{
	{"rate: 100000/1h, burst: 100000, concurrency: 6, scope: exact, wait: 1m", 6, 0},
	{"rate: 200000/1h, burst: 200000, concurrency: 2, scope: exact, wait: 1m", 2, 0},
	{"rate: 40/1h, algorithm: sliding_log, concurrency: 8, scope: exact", 8, 40},
	{"rate: 25/1h, algorithm: fixed_window, concurrency: 8, scope: exact", 8, 25},
	{"rate: 100000/1h, burst: 100000, concurrency: 3, scope: exact", 3, 0},
}

func reloadRules(limit string) string {
	return fmt.Sprintf(`
  - id: work
    match: {route: "GET /work"}
    by: [q]
    limit: {%s}
`, limit)
}

// Limits change under load, one instance after the other. No request fails, the new limit holds,
// and no permit is lost or returned twice.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 3, reloadRules(reloads[0].limit))
	stop := c.hammer(6, c.urls("/work?q=load&hold=3ms")...)
	type phase struct{ from, to time.Time }
	var phases []phase
	for _, r := range reloads {
		for _, w := range c.workers {
			rules, err := workRules(reloadRules(r.limit))
			if err != nil {
				t.Fatal(err)
			}
			if err := w.guard.Reload(rules); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond) // instances differ, and requests continue
		}
		in := phase{from: time.Now()}
		if r.passes > 0 {
			c.mustPass(r.passes, fmt.Sprintf("/work?q=new-%d", r.passes))
		}
		time.Sleep(200 * time.Millisecond)
		in.to = time.Now()
		phases = append(phases, in)
	}
	answers := stop()
	wellAnswered(t, answers)
	c.idle()
	c.mustServe(reloads[len(reloads)-1].permits, "/work?q=load&hold=gate")

	for i, p := range phases {
		most, of := c.busiest(settled(answers, p.from), p.to) // a request is limited by the rules at its arrival
		t.Logf("%s: of %d requests at most %d at work at a time", reloads[i].limit, of, most)
		if reloads[i].passes == 0 && most > reloads[i].permits {
			t.Errorf("%s: %d at work at a time", reloads[i].limit, most)
		}
		met := until(since(answers, p.from), p.to)
		if n := len(met) - count(met, http.StatusOK); n > 0 && i < 2 {
			t.Errorf("%s: %d of %d refused, though they may wait", reloads[i].limit, n, len(met))
		}
	}
	for _, w := range c.workers {
		if s := w.guard.Stats(); s.Undecided != 0 || s.Panics != 0 || s.Unavailable != 0 {
			t.Errorf("%+v", s)
		}
	}
}

// reload puts other rules in force, as an operator does.
func (a *api) reload(rules string) {
	t := a.f.t
	t.Helper()
	a.f.rules = rules
	a.f.writeConfig(a.file, a.f.sections())
	file, err := config.Load(a.file)
	if err != nil {
		t.Fatal(err)
	}
	a.Signal(syscall.SIGHUP)
	a.WaitFor("rules are in force.*" + file.Rules.Version)
}

// Processes reload their limits on a signal: permits already taken still count under a higher
// limit.
func TestReloadOfProcesses(t *testing.T) {
	t.Parallel()
	rules := func(limit string) string {
		return fmt.Sprintf(`
  - id: products
    match: {route: "GET /products/{id}"}
    by: ["path:id"]
    limit: {%s, scope: exact, when_redis_is_away: closed}
`, limit)
	}
	f := newFleet(t, commands(t), rules("rate: 30/1h, algorithm: sliding_log"))
	apis := f.startAPIs(2)
	stop := f.hammer(3, apis[0].url+"/products/load", apis[1].url+"/products/load")
	before := f.passSome(apis, 20, "/products/7")
	for _, a := range apis {
		a.reload(rules("rate: 50/1h, algorithm: sliding_log"))
	}
	more := f.passSome(apis, 40, "/products/7")
	for _, a := range apis {
		a.reload(rules("rate: 10/1h, burst: 10"))
	}
	bucket := f.passSome(apis, 20, "/products/7")
	answers := stop()
	wellAnswered(t, answers)
	t.Logf("passed %d, %d more, %d of a bucket (30, 20 and 10, unless Redis was slow: %d times)", before, more, bucket, count(answers, http.StatusServiceUnavailable))
	if before > 30 || before+more > 50 || bucket > 10 {
		t.Errorf("passed %d, %d more, %d of a bucket; at most 30, up to 50, and 10 may", before, more, bucket)
	}
}

// passSome sends requests until some pass, and returns how many did.
func (f *fleet) passSome(apis []*api, times int, path string) (passed int) {
	f.t.Helper()
	within(f.t, patience, path+" passes", func() bool {
		_, passed = f.askAll(apis, times, path)
		return passed > 0
	})
	return passed
}

// mustPass checks that exactly so many requests of a new key pass over all instances.
func (c *crew) mustPass(want int, path string) {
	c.t.Helper()
	var answers []answer
	for range 20 {
		for _, url := range c.urls(path) {
			answers = append(answers, c.ask(url))
		}
	}
	wellAnswered(c.t, answers)
	if n := count(answers, http.StatusOK); n != want {
		c.t.Errorf("%d of %d passed, want %d", n, len(answers), want)
	}
}
