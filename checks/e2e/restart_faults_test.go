package e2e

import (
	"os"
	"slices"
	"testing"

	"github.com/hotparam/hotparam/checks/mutants"
	"github.com/hotparam/hotparam/checks/overlay"
)

// The judge of restarts finds faults that are planted in the aggregator: those of checks/mutants,
// here in real processes. "make mutants" runs it.
func TestPlantedRestartFaultsAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ fault, kind string }{
		{"keys that are published already are not adopted", wrongLeave},
		{"the detector refuses keys that another process published", wrongLeave},
		{"a high count is known before its window was heard whole", wrongBound},
		{"a key that is adopted is held by the threshold of its cause alone", wrongLeave},
		{"the StatsD source takes its first window for whole", wrongBound},
	} {
		t.Run(c.fault, func(t *testing.T) {
			t.Parallel()
			fault := faultNamed(t, c.fault)
			if os.Getenv("HOTPARAM_CHAOS_FAULTS") != "all" {
				t.Skip("takes a minute: make mutants runs it")
			}
			bin := faultyCommands(t, fault)
			for range 2 { // on a stalled machine much is excused
				wrong := runRestarts(t, bin, shortRestarts)
				for kind, all := range wrong {
					t.Logf("%d times %s: %s", len(all), kind, all[0])
				}
				if len(wrong[c.kind]) > 0 {
					return
				}
			}
			t.Errorf("nothing %s", c.kind)
		})
	}
}

func faultNamed(t *testing.T, name string) overlay.Edit {
	t.Helper()
	faults := mutants.Faults()
	at := slices.IndexFunc(faults, func(f mutants.Fault) bool { return f.Name == name })
	if at < 0 {
		t.Fatalf("there is no fault %q", name)
	}
	return overlay.Edit{File: faults[at].File, Old: faults[at].Old, New: faults[at].New}
}

// faultyCommands returns commands built with a fault.
func faultyCommands(t *testing.T, fault overlay.Edit) programs {
	t.Helper()
	root, err := overlay.Root()
	if err != nil {
		t.Fatal(err)
	}
	changed, err := overlay.Write(t.TempDir(), root, []overlay.Edit{fault})
	if err != nil {
		t.Fatal(err)
	}
	return build(t, "-overlay", changed)
}
