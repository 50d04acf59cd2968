//go:build real && !race

package replay

import "testing"

// The race detector finds little in a single goroutine, and makes these slow. cmd/verifyreplay
// has more thresholds.
func TestLongTraces(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	checkTraces(t, []traceCase{
		{"dns-2018-03-24.access.jsonl.zst", "name", "10/1s 100/10s 100/15s"},
		{"higgs-2012-07-01.access.log.zst", "user", "30/1m 100/10m 200/1h"},
		{"cache2k-web07.keys.zst", "id", "50/1s"},
		{"mooncake-conversation.jsonl.zst", "hash", "100/1m"},
	})
}
