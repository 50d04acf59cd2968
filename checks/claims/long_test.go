//go:build !race

package claims

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// The traces that are not in the repository, if they span minutes and not days; cmd/verifyclaims
// has all. The race detector finds little in a single goroutine and makes these slow.
func TestTracesOfMinutes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	for _, trace := range traces {
		if trace.span != short {
			continue
		}
		t.Run(trace.file+" by "+trace.keyBy, func(t *testing.T) { holdsTrace(t, testenv.SharedData(t, trace.file), trace.keyBy, trace.rules...) })
	}
}

// A flood that is many times as large as the budget of lines hides no hot key either.
func TestALargeFloodBlindsNoKind(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("left out with -short")
	}
	blindsNoKind(t, 24_000, Network{Most: 20 * time.Millisecond})
}
