package cost

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// fullVariable asks for the scenarios with hotparam, as make verify-cost does.
const fullVariable = "HOTPARAM_COST"

func testLoad() Load {
	return Load{Rate: 2000, Share: 0.001, Before: 30 * time.Second, During: 25 * time.Second, After: 15 * time.Second}
}

// whenAsked skips a test unless all scenarios are asked for. How much one value slows others down
// depends on the machine, and on what else it does.
func whenAsked(t *testing.T) {
	t.Helper()
	if os.Getenv(fullVariable) != "full" {
		t.Skip("make verify-cost runs it: it takes minutes, and a machine with nothing else to do")
	}
}

// One value of a filter makes the database scan its table. Without a limiter the clients of all
// others wait for it: what the other tests show is not the machine's doing.
func TestOneValueSlowsAllOthersWithoutALimiter(t *testing.T) {
	whenAsked(t)
	l := testLoad()
	l.Before, l.After = 15*time.Second, 0 // hotparam needs more to learn what is usual
	r := Run(t, OpenDatabase(t), "", None, scenario(t, "one"), l)
	v := r.Judge()
	t.Logf("\n%s%v", r.Table(), v)
	if v.Ratio < 10 {
		t.Errorf("p99 of the others rises from %.1f ms to %.1f ms alone", v.Calm, v.Held)
	}
}

func TestCostsAreFound(t *testing.T) {
	whenAsked(t)
	db := OpenDatabase(t)
	program := filepath.Join(testenv.Commands(t, nil, "./cmd/hotparam"), "hotparam")
	for _, s := range Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			r := Run(t, db, program, Hotparam, s, testLoad())
			v := r.Judge()
			t.Logf("\n%s%v", r.Table(), v)
			// The bounds allow for a busy machine. The log has the goals.
			if len(v.Missed) > 0 || v.Found > 5*foundGoal {
				t.Errorf("not found: %q; the others after %v", v.Missed, v.Found)
			}
			if v.Ratio > 4*ratioGoal {
				t.Errorf("p99 of the others rises from %.1f ms to %.1f ms", v.Calm, v.Held)
			}
			if len(v.Kept) > 0 {
				t.Errorf("still held after %v: %q", testLoad().After, v.Kept)
			}
			if len(v.Blamed) > 0 {
				t.Errorf("held, and no cause: %q", v.Blamed)
			}
		})
	}
}

func scenario(t *testing.T, name string) Scenario {
	t.Helper()
	for _, s := range Scenarios() {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no scenario %q", name)
	return Scenario{}
}
