package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/internal/testenv"
)

// guarded is a gateway with its guard and an application behind it. The gateway runs with the
// configuration and the timeouts of deploy/gateways.
type guarded struct {
	*fleet
	kind       *gatewayKind
	door       string // the guard's address
	config     string // its file
	guard      *testenv.Process
	quiet, hot *flow
}

// faultyGateways are the gateways whose guards are killed, stopped and slowed down. Traefik is
// not among them: without failover.yaml it passes no requests while the guard is unavailable.
var faultyGateways = append(slices.Clone(gatewayKinds),
	gatewayKind{"lua", "auth", 50 * time.Millisecond, func(tb testing.TB, app, door string, _ time.Duration) string {
		return real.HAProxy28(tb).Start(tb, "gateways/haproxy/lua/haproxy.cfg", "APP="+app, "HOTPARAM_AUTH="+door).Addr
	}})

const (
	quietRate   = 25 // requests a second through each gateway, for 500 values in rotation
	crowdRate   = 40 // of one value, which is hot at 20/s and limited to 5/s
	crowdLimits = `
  - id: search
    match: {route: "GET /search"}
    by: [q]
    hot: {rate: 20/s, hold: 2s}
    limit: {rate: 5/s, burst: 5, scope: instance}
`
	// busyMachine is added to the configured timeout, since all processes of the test share two
	// processors.
	busyMachine = maxLag + time.Second
)

// startGuarded starts a gateway of each kind with a guard, and traffic through it.
func (f *fleet) startGuarded(app string) (all []*guarded) {
	f.t.Helper()
	var flows []*flow
	for i := range faultyGateways {
		kind := &faultyGateways[i]
		g := &guarded{fleet: f, kind: kind, door: fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(f.t)), config: f.file(f.sections())}
		url := "http://" + kind.start(f.t, app, g.door, kind.timeout)
		g.startGuard()
		g.guard.WaitFor("guard is up")
		g.quiet = &flow{name: kind.name + ", quiet values", url: url + "/search?q=", values: 500, perSecond: quietRate}
		g.hot = &flow{name: kind.name + ", the crowd's value", url: url + "/search?q=crowd", perSecond: crowdRate, hot: true}
		flows = append(flows, g.quiet, g.hot)
		all = append(all, g)
	}
	f.beginFlows(flows...)
	return all
}

func (g *guarded) startGuard() {
	g.t.Helper()
	g.guard = g.startProgram(g.bin.hotparam, "guard", "--config", g.config, "--http", "127.0.0.1:0", "--"+g.kind.door, g.door)
}

// isLimiting reports whether most of the crowd's last requests since an instant were refused.
func (g *guarded) isLimiting(since time.Time) bool {
	const enough = crowdRate / 4
	last := g.hot.between(since, time.Now())
	return len(last) >= enough && count(last[len(last)-enough:], http.StatusTooManyRequests) > enough/2
}

// A gateway's guard is killed, stopped and slowed down, and Redis and the aggregator fail. During
// each fault every request of a quiet value passes within the timeout of the gateway's
// configuration. Within 3 s of the fault's end the crowd's value is limited again.
func TestFaultsBehindGateways(t *testing.T) {
	t.Parallel()
	f := newFleet(t, quickCommands(t), crowdLimits)
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(app.Close)
	daemon := f.startAggregator()
	all := f.startGuarded(strings.TrimPrefix(app.URL, "http://"))
	each := func(do func(*guarded)) {
		for _, g := range all {
			do(g)
		}
	}
	signal := func(s syscall.Signal) { each(func(g *guarded) { g.guard.Signal(s) }) }
	limited := func(limit time.Duration, since time.Time) {
		t.Helper()
		each(func(g *guarded) {
			within(t, limit-time.Since(since), g.kind.name+": the crowd is limited", func() bool { return g.isLimiting(since) })
			t.Logf("%s: limited again after %v", g.kind.name, time.Since(since).Round(time.Millisecond))
		})
	}
	limited(patience, time.Now())
	for _, fault := range []struct {
		name       string
		begin, end func()
		lasts      time.Duration
		limits     bool // the guard still knows the hot keys during the fault
	}{
		{"the guard is killed", func() { each(func(g *guarded) { g.guard.Kill() }) }, func() {
			each((*guarded).startGuard)
			each(func(g *guarded) { g.guard.WaitFor("guard is up") })
		}, time.Second, false},
		{"the guard is stopped", func() { signal(syscall.SIGSTOP) }, func() { signal(syscall.SIGCONT) }, 2 * time.Second, false},
		{"the guard is slow", func() {
			for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				signal(syscall.SIGSTOP)
				time.Sleep(150 * time.Millisecond)
				signal(syscall.SIGCONT)
			}
		}, func() {}, 0, false},
		{"Redis hangs", f.redis.Pause, f.redis.Resume, 2 * time.Second, true},
		{"Redis is killed", f.redis.Kill, f.redis.Restart, time.Second, true},
		{"the aggregator is killed", func() { daemon.Kill() }, func() { daemon = f.startAggregator() }, time.Second, true},
	} {
		begin := time.Now()
		fault.begin()
		time.Sleep(fault.lasts)
		fault.end()
		end := time.Now()
		limited(recovery, end)
		each(func(g *guarded) { g.checkAnswers(fault.name, begin, end, fault.limits) })
	}
	each(func(g *guarded) {
		if code := g.guard.Stop(); code != 0 {
			t.Errorf("the guard of %s ended with exit code %d", g.kind.name, code)
		}
	})
}

// checkAnswers checks the requests since the beginning of a fault.
func (g *guarded) checkAnswers(fault string, begin, end time.Time, limits bool) {
	g.t.Helper()
	quiet := g.quiet.between(begin, time.Now())
	var longest time.Duration
	for _, s := range quiet {
		longest = max(longest, s.took())
		if s.err != nil || s.status != http.StatusOK || s.took() > g.kind.timeout+busyMachine {
			g.t.Errorf("%s, %s: status %d after %v, error %v; want 200 within %v", fault, g.quiet.name, s.status, s.took(), s.err, g.kind.timeout)
		}
	}
	crowd := g.hot.between(begin, end)
	for _, s := range crowd {
		if !g.hot.good(s) {
			g.t.Errorf("%s, %s: status %d after %v, error %v", fault, g.hot.name, s.status, s.took(), s.err)
		}
	}
	n := count(crowd, http.StatusTooManyRequests)
	g.t.Logf("%s, %s: %d requests of quiet values passed within %v; %d of %d of the crowd were refused meanwhile", fault, g.kind.name, len(quiet), longest.Round(time.Millisecond), n, len(crowd))
	if len(quiet) < quietRate/2 {
		g.t.Errorf("%s, %s: %d requests of quiet values", fault, g.kind.name, len(quiet))
	}
	if limits && n < len(crowd)/2 {
		g.t.Errorf("%s, %s: %d of %d of the crowd were refused, want most: the guard knows what is hot", fault, g.kind.name, n, len(crowd))
	}
}
