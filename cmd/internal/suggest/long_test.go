//go:build real && !race

package suggest

import "testing"

// The race detector finds nothing in a single goroutine.
func TestLongTraces(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	checkProposals(t, []proposal{
		{"higgs-2012-07-01.access.log.zst", []float64{10}, 1},
		{"dns-2018-03-24.access.jsonl.zst", []float64{5}, 1},
	})
}
