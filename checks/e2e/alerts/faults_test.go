package alerts

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/internal/testenv"
)

// alertFault is a real fault and the alerts that it should make fire. Alerts in may can fire with
// them, since they report the same fault from another place.
type alertFault struct {
	name         string
	strike, mend func(*alertStack)
	want         []string
	may          []string
	says         string // text in doctor's output
}

var alertFaults = []alertFault{
	{
		name: "redis-away", want: []string{"HotparamRedisAway", "HotparamInstanceBlind"},
		strike: func(s *alertStack) { s.redis.Kill() },
		mend:   func(s *alertStack) { s.redis.Restart() },
		says:   "does not answer",
	},
	{
		name: "aggregator-dead", want: []string{"HotparamAggregatorDown", "HotparamNobodyPublishes"},
		// No one listens at its port, and the instances that it knew of expire one by one.
		may:    []string{"HotparamCountsDropped", "HotparamInstancesUnheard"},
		strike: func(s *alertStack) { s.aggregator.Kill() },
		mend:   (*alertStack).restartAggregator,
		says:   `no aggregator publishes for namespace "shop"`,
	},
	{
		name: "packets-lost", want: []string{"HotparamPacketsLost"},
		strike: func(s *alertStack) { s.relay.lose.Store(30) },
		// A restart resets its count of lost packets, as a larger socket buffer would require.
		mend: func(s *alertStack) { s.relay.lose.Store(0); s.restartAggregator() },
		says: "were lost",
	},
	{
		name: "clock-off", want: []string{"HotparamClockOff"},
		strike: func(s *alertStack) { s.relay.offset.Store(-int64(5 * time.Second)); s.clock.offset.Store(5) },
		mend:   func(s *alertStack) { s.relay.offset.Store(0); s.clock.offset.Store(0) },
		says:   "the clock of instance clock-off-1 is ",
	},
	{
		name: "old-rules", want: []string{"HotparamRulesDiffer"},
		strike: func(s *alertStack) { s.edit("limit: 50/s", "limit: 40/s", 1) },
		mend:   func(s *alertStack) { s.edit("limit: 40/s", "limit: 50/s", 1) },
		says:   " at instance old-rules-1",
	},
	{
		name: "file-refused", want: []string{"HotparamFileRefused"},
		strike: func(s *alertStack) { s.edit("rules: [{", "rules: [", 0, 1) },
		mend:   func(s *alertStack) { s.edit("rules: [", "rules: [{", 0, 1) },
		says:   "hotparam.yaml:4:",
	},
	{
		name: "memory-full", want: []string{"HotparamMemoryFull"},
		may:    []string{"HotparamPacketsLost"}, // it is a flood
		strike: func(s *alertStack) { s.startFlood(60_000, 25) },
		mend: func(s *alertStack) {
			s.flood.stop()
			s.edit("memory: 1MiB", "memory: 64MiB", 0, 1, 2)
			s.restartAggregator()
		},
		says: "it is not known whether they are hot",
	},
	{
		name: "published-set-full", want: []string{"HotparamPublishedSetFull"},
		may:    []string{"HotparamPacketsLost"},
		strike: func(s *alertStack) { s.startFlood(1_200, 100) },
		mend:   func(s *alertStack) { s.flood.stop(); s.edit("hot: 30/10s", "hot: 3000/10s", 0, 1, 2) },
		says:   "are limited nowhere, as the published set is full",
	},
}

// alertPatience bounds how long an alert may take to fire. The rules use minutes; here the
// slowest part is the aggregator's last state, which stays in Redis for ten seconds.
const alertPatience = 40 * time.Second

// watchedFault is a fault, the stack that it strikes, and the panels that the runbook names for
// it.
type watchedFault struct {
	alertFault
	stack    *alertStack
	sections []section
	panels   map[string]panel
	server   *real.PrometheusServer
}

// notYet returns the signs that the fault still lacks or, with shown false, those that it still
// has.
func (f *watchedFault) notYet(shown bool, firing []string) (missing []string) {
	colour := "green"
	if shown {
		colour = "red"
		for _, alert := range f.want {
			if !slices.Contains(firing, alert) {
				missing = append(missing, alert+" does not fire")
			}
		}
	} else if len(firing) > 0 {
		missing = append(missing, fmt.Sprintf("there fire %q", firing))
	}
	var checks []string
	for _, section := range f.sections {
		checks = append(checks, section.check)
		for _, title := range section.panels {
			p, found := f.panels[title]
			if !found {
				f.stack.t.Fatalf("runbook, %s: the dashboard has no panel %s", section.name, title)
			}
			if now := p.colour(f.server, f.stack); now != colour {
				missing = append(missing, fmt.Sprintf("panel %s is not %s: %s", title, colour, now))
			}
		}
	}
	if len(missing) > 0 {
		return missing // doctor is asked last, as it takes longest
	}
	problems := f.stack.askDoctor()
	if shown && slices.Contains(f.may, "HotparamPacketsLost") && !slices.Contains(checks, "losses") {
		problems = slices.DeleteFunc(problems, func(p finding) bool { return p.Check == "losses" })
	}
	said := func(p finding) bool { return strings.Contains(p.What, f.says) }
	switch {
	case !shown && len(problems) > 0:
		missing = append(missing, fmt.Sprintf("doctor has problems: %+v", problems))
	case shown && (!slices.Equal(checksOf(problems), slices.Compact(checks)) || !slices.ContainsFunc(problems, said)):
		missing = append(missing, fmt.Sprintf("doctor does not name %s alone, and say %q: %+v", checks[0], f.says, problems))
	}
	return missing
}

// awaitFaults waits until every fault shows, or no longer shows. It calls see with the firing
// alerts.
func awaitFaults(t *testing.T, server *real.PrometheusServer, faults []*watchedFault, shown bool, see func(f *watchedFault, firing []string)) {
	t.Helper()
	began, rest, patience := time.Now(), slices.Clone(faults), alertPatience
	if !shown { // what a busy machine has made late is in heartbeats for a minute
		patience += time.Minute
	}
	for {
		firing := alertsByStack(server, "firing")
		for _, f := range faults {
			see(f, firing[f.name])
		}
		var missing []string
		rest = slices.DeleteFunc(rest, func(f *watchedFault) bool {
			not := f.notYet(shown, firing[f.name])
			if not == nil {
				t.Logf("%s: shown=%v after %v", f.name, shown, time.Since(began).Round(100*time.Millisecond))
				return true
			}
			missing = append(missing, f.name+": "+strings.Join(not, "; "))
			return false
		})
		if len(rest) == 0 {
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("shown=%v, after %v:\n%s", shown, patience, strings.Join(missing, "\n"))
		}
		time.Sleep(250 * time.Millisecond)
	}
}

// During real faults of real stacks their alerts fire on a real Prometheus, and no others. The
// panels that the runbook names for them are red. hotparam doctor names the faults, no others,
// and how to mend them. Before the faults and after they are mended, nothing fires, the panels
// are green, and doctor's exit code is 0. All faults happen at once, each to a stack of its own.
func TestFaultsShow(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute, and processes: left out with -short")
	}
	real.Promtool(t) // absent, nothing need be started
	var faults []*watchedFault
	scrapes, panels := "", readPanels(t)
	for _, fault := range alertFaults {
		f := &watchedFault{alertFault: fault, stack: newAlertStack(t, fault.name), sections: sectionsOf(t, fault.want), panels: panels}
		faults = append(faults, f)
		scrapes += f.stack.scrape()
	}
	rules := filepath.Join(t.TempDir(), "alerts.yml")
	testenv.WriteFile(t, rules, hurried(t))
	server := real.Prometheus(t, fmt.Sprintf("global: {scrape_interval: 250ms, scrape_timeout: 250ms, evaluation_interval: 250ms}\n"+
		"rule_files: [%s]\nscrape_configs:\n%s", rules, scrapes))
	for _, f := range faults {
		f.server = server
	}

	awaitScrapes(t, server, 3*len(faults))
	if early := alertsByStack(server, "pending", "firing"); len(early) > 0 {
		t.Fatalf("alerts before any fault: %v", early)
	}
	awaitFaults(t, server, faults, false, func(*watchedFault, []string) {})
	for _, f := range faults {
		f.strike(f.stack)
	}
	others := make(map[string]bool)
	awaitFaults(t, server, faults, true, func(f *watchedFault, firing []string) {
		for _, alert := range firing {
			if !slices.Contains(f.want, alert) && !slices.Contains(f.may, alert) {
				others[f.name+" makes "+alert+" fire"] = true
			}
		}
	})
	for other := range others {
		t.Error(other)
	}
	for _, f := range faults {
		f.mend(f.stack)
	}
	awaitFaults(t, server, faults, false, func(*watchedFault, []string) {})
}

// awaitScrapes waits until all targets have been up for longer than any rule looks back.
func awaitScrapes(t *testing.T, server *real.PrometheusServer, targets int) {
	t.Helper()
	// Eight scrapes in four seconds, so that a busy machine may miss half of them.
	testenv.Within(t, alertPatience, fmt.Sprintf("all of %d targets are up", targets), func() bool {
		return server.Value("count(sum_over_time(up[4s]) >= 8)") == float64(targets)
	})
}

// hurried returns the path of a copy of the alert rules with shortened durations.
func hurried(t *testing.T) string {
	t.Helper()
	text := testenv.ReadFile(t, "../../../deploy/prometheus/alerts.yml")
	s := regexp.MustCompile(`(?m)^( *for:) .*$`).ReplaceAllString(text, "$1 1s")
	s = regexp.MustCompile(`\[\d+m\]`).ReplaceAllString(s, "[3s]")
	return strings.ReplaceAll(s, "[1h]", "[1m]")
}

// alertsByStack returns the names of the alerts in any of the states, grouped by the stack of
// their job.
func alertsByStack(server *real.PrometheusServer, states ...string) map[string][]string {
	names := make(map[string][]string)
	for _, alert := range server.Alerts() {
		stack, _, _ := strings.Cut(alert.Labels["job"], "/")
		if slices.Contains(states, alert.State) && !slices.Contains(names[stack], alert.Labels["alertname"]) {
			names[stack] = append(names[stack], alert.Labels["alertname"])
		}
	}
	return names
}
