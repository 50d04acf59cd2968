package alerts

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// alertFault is a real fault, and the alerts that it should make fire. Others may fire with
// them that say the same from elsewhere.
type alertFault struct {
	name   string
	strike func(*alertStack)
	want   []string
	may    []string
}

var alertFaults = []alertFault{
	{
		name: "redis-away", want: []string{"HotparamRedisAway", "HotparamInstanceBlind"},
		strike: func(s *alertStack) { s.redis.Kill() },
	},
	{
		name: "aggregator-dead", want: []string{"HotparamAggregatorDown", "HotparamNobodyPublishes"},
		// Nobody listens at its port, and what it last knew of instances ends one by one.
		may:    []string{"HotparamCountsDropped", "HotparamInstancesUnheard"},
		strike: func(s *alertStack) { s.aggregator.Kill() },
	},
	{
		name: "packets-lost", want: []string{"HotparamPacketsLost"},
		strike: func(s *alertStack) { s.relay.lose.Store(30) },
	},
	{
		name: "clock-off", want: []string{"HotparamClockOff"},
		strike: func(s *alertStack) { s.relay.offset.Store(-int64(5 * time.Second)) },
	},
	{
		name: "old-rules", want: []string{"HotparamRulesDiffer"},
		strike: func(s *alertStack) {
			text, err := os.ReadFile(s.files[1])
			if err != nil {
				s.t.Fatal(err)
			}
			write(s.t, s.files[1], strings.Replace(string(text), "limit: 50/s", "limit: 40/s", 1))
		},
	},
	{
		name: "file-refused", want: []string{"HotparamFileRefused"},
		strike: func(s *alertStack) { write(s.t, s.files[0], "rules: ["); write(s.t, s.files[1], "rules: [") },
	},
	{
		name: "memory-full", want: []string{"HotparamMemoryFull"},
		may:    []string{"HotparamPacketsLost"}, // it is a flood
		strike: func(s *alertStack) { s.sendCounts(60_000, 25) },
	},
	{
		name: "published-set-full", want: []string{"HotparamPublishedSetFull"},
		may:    []string{"HotparamPacketsLost"},
		strike: func(s *alertStack) { s.sendCounts(1_200, 100) },
	},
}

// alertPatience bounds how long an alert may take. In the file it is minutes, by intent; here
// the longest part is that an aggregator's last word in Redis holds for ten seconds.
const alertPatience = 40 * time.Second

// Real faults of real stacks make their alerts fire on a real Prometheus, and no others.
// All happen at once, each to a stack of its own.
func TestFaultsFireTheirAlerts(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute, and processes: left out with -short")
	}
	testenv.Promtool(t) // absent, nothing need be started
	stacks := make(map[string]*alertStack)
	scrapes := ""
	for _, fault := range alertFaults {
		s := newAlertStack(t, fault.name)
		stacks[fault.name] = s
		scrapes += s.scrape()
	}
	rules := filepath.Join(t.TempDir(), "alerts.yml")
	write(t, rules, hurried(t))
	server := testenv.Prometheus(t, fmt.Sprintf("global: {scrape_interval: 250ms, scrape_timeout: 250ms, evaluation_interval: 250ms}\n"+
		"rule_files: [%s]\nscrape_configs:\n%s", rules, scrapes))

	awaitScrapes(t, server, 3*len(stacks))
	if early := alertsByStack(server, "pending", "firing"); len(early) > 0 {
		t.Fatalf("alerts before any fault: %v", early)
	}
	began := time.Now()
	for _, fault := range alertFaults {
		fault.strike(stacks[fault.name])
	}
	missing, others := slices.Clone(alertFaults), make(map[string]bool)
	for time.Since(began) < alertPatience && len(missing) > 0 {
		time.Sleep(100 * time.Millisecond)
		firing := alertsByStack(server, "firing")
		for _, f := range alertFaults {
			for _, alert := range firing[f.name] {
				if !slices.Contains(f.want, alert) && !slices.Contains(f.may, alert) {
					others[f.name+" makes "+alert+" fire"] = true
				}
			}
		}
		missing = slices.DeleteFunc(missing, func(f alertFault) bool {
			for _, alert := range f.want {
				if !slices.Contains(firing[f.name], alert) {
					return false
				}
			}
			t.Logf("%s: %q fire after %v", f.name, firing[f.name], time.Since(began).Round(100*time.Millisecond))
			return true
		})
	}
	for other := range others {
		t.Error(other)
	}
	for _, f := range missing {
		t.Errorf("%s: after %v there fire %q, want %q", f.name, alertPatience, alertsByStack(server, "firing")[f.name], f.want)
	}

	stacks["redis-away"].redis.Restart()
	for began := time.Now(); len(alertsByStack(server, "firing")["redis-away"]) > 0; time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > alertPatience {
			t.Fatalf("Redis is there again, and after %v there still fire %q", alertPatience, alertsByStack(server, "firing")["redis-away"])
		}
	}
}

// awaitScrapes waits until all targets have been up for longer than any rule looks back.
func awaitScrapes(t *testing.T, server *testenv.PrometheusServer, targets int) {
	t.Helper()
	for deadline := time.Now().Add(alertPatience); ; time.Sleep(100 * time.Millisecond) {
		// Eight scrapes in four seconds, so that a busy machine may miss half of them.
		if up := server.Value("count(sum_over_time(up[4s]) >= 8)"); up == float64(targets) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not all of %d targets are up", targets)
		}
	}
}

// hurried is the file of rules with its durations shortened, and otherwise as it is.
func hurried(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	s := regexp.MustCompile(`(?m)^( *for:) .*$`).ReplaceAllString(string(text), "$1 1s")
	s = regexp.MustCompile(`\[\d+m\]`).ReplaceAllString(s, "[3s]")
	return strings.ReplaceAll(s, "[1h]", "[1m]")
}

// alertsByStack are the names of the alerts in any of the states, by the stack that their job
// is of.
func alertsByStack(server *testenv.PrometheusServer, states ...string) map[string][]string {
	names := make(map[string][]string)
	for _, alert := range server.Alerts() {
		stack, _, _ := strings.Cut(alert.Labels["job"], "/")
		if slices.Contains(states, alert.State) && !slices.Contains(names[stack], alert.Labels["alertname"]) {
			names[stack] = append(names[stack], alert.Labels["alertname"])
		}
	}
	return names
}
