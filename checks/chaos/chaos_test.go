package chaos

import (
	"cmp"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/overlay"
	"github.com/hotparam/hotparam/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// testWriter writes the log of a run to the log of a test.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s", strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

func short(t *testing.T, seed uint64, only ...string) Config {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes: left out with -short")
	}
	programs := programsIn(testenv.Commands(t, nil, hotparamPackage, instancePackage))
	return Config{Programs: programs, Seed: seed, Duration: 10 * time.Minute, Scenario: "all", Redis: "single", Counts: "statsd", Only: only, Log: testWriter{t}}
}

// The short part of "make chaos" breaks no invariant: the most revealing events in a fixed order, and
// besides what goes away most often.
func TestInvariantsHold(t *testing.T) {
	t.Parallel()
	for name, events := range map[string][]string{
		"rules and floods": {"split", "flood-hot-keys", "second-aggregator", "poison-limit", "flood-nonsense"},
		"outages":          {"kill-redis", "stop-redis", "silent-link", "kill-aggregator", "lost-counts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := short(t, 1, events...)
			if report := Run(t, c); report.Broken() {
				t.Error(report)
			} else if report.Shared == 0 || report.Changes == 0 {
				t.Errorf("no answers came from memory, or none was changed: %v", report)
			} else {
				t.Log(report)
			}
		})
	}
}

// Each planted fault still matches the source. The short tests thus find a fault that a change to
// the source has left behind.
func TestFaultsApply(t *testing.T) {
	root, err := overlay.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range Faults() {
		if _, err := overlay.Write(t.TempDir(), root, fault.Edits); err != nil {
			t.Errorf("%s: %v", fault.Name, err)
		}
	}
}

// Each planted fault is found, as a violation of the invariant that it breaks. On a stalled
// machine much is excused, so a fault that was not found gets a second run. This test plants one
// fault for each invariant; "make mutants" plants all.
func TestPlantedFaultsAreFound(t *testing.T) {
	full := os.Getenv("HOTPARAM_CHAOS_FAULTS") == "all"
	tried := make(map[string]bool)
	for _, fault := range Faults() {
		if tried[fault.Invariant] && !full {
			continue
		}
		tried[fault.Invariant] = true
		t.Run(fault.Name, func(t *testing.T) {
			t.Parallel()
			c := short(t, fault.Seed, fault.Only...)
			c.Until = fault.Invariant
			c.Redis = cmp.Or(fault.Redis, c.Redis)
			c.Counts = cmp.Or(fault.Counts, c.Counts)
			var err error
			if c.Programs, err = c.Programs.Plant(t.TempDir(), fault); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				report := Run(t, c)
				for _, v := range report.Violations {
					if strings.HasPrefix(v.Invariant, fault.Invariant) {
						return
					}
				}
				t.Logf("no violation of %s: %v", fault.Invariant, report)
			}
			t.Error("not found")
		})
	}
}
