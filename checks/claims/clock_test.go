//go:build !race

// These tests run in one goroutine: they have no races, and are slow under the race detector.

package claims

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// randomClocks returns the clocks of some instances: slightly or far off, drifting, or set in
// between.
func randomClocks(t *rapid.T, instances int) (clocks []InstanceClock) {
	for range rapid.IntRange(1, instances).Draw(t, "off") {
		c := InstanceClock{
			Ahead: rapid.SampledFrom([]time.Duration{0, 100 * time.Millisecond, time.Second, 4 * time.Second, time.Minute, time.Hour}).Draw(t, "ahead"),
			Drift: rapid.SampledFrom([]float64{0, 0, 0.001, -0.001}).Draw(t, "drift"),
		}
		if rapid.Bool().Draw(t, "slow") {
			c.Ahead = -c.Ahead
		}
		// It may go back by more than the time between two packets.
		c.Set = rapid.SampledFrom([]time.Duration{0, 0, 3 * time.Second, time.Hour, -time.Minute, -time.Hour}).Draw(t, "set")
		c.At = time.Duration(rapid.IntRange(100, 15_000).Draw(t, "at")) * time.Millisecond
		clocks = append(clocks, c)
	}
	return clocks
}

// The claims hold by the aggregator's clock, whatever the clocks of the instances.
func TestClocks(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	size := StreamSize{Rate: 1500, Keys: 300, Instances: 5, Length: 14 * time.Second}
	rules := []HotRule{NewRule(60, time.Second, time.Second/2), NewRule(300, 10*time.Second, time.Second)}
	for name, clocks := range map[string][]InstanceClock{
		"slow":           {{Ahead: -4 * time.Second}, {Ahead: -time.Hour}},
		"fast":           {{Ahead: 4 * time.Second}, {Ahead: time.Hour}},
		"a little":       {{Ahead: 200 * time.Millisecond}, {Ahead: -200 * time.Millisecond}},
		"slow and fast":  {{Ahead: -4 * time.Second}, {Ahead: 4 * time.Second}, {Ahead: -time.Minute}, {Ahead: time.Minute}},
		"drifting":       {{Drift: 0.001}, {Drift: -0.001}, {Ahead: -4 * time.Second, Drift: 0.001}},
		"set right":      {{Ahead: -4 * time.Second, Set: 4 * time.Second, At: 6 * time.Second}, {Ahead: 4 * time.Second, Set: -4 * time.Second, At: 7 * time.Second}},
		"set wrong":      {{Set: 4 * time.Second, At: 6 * time.Second}, {Set: -4 * time.Second, At: 7 * time.Second}},
		"set by an hour": {{Ahead: -time.Hour, Set: time.Hour, At: 6 * time.Second}, {Set: -time.Hour, At: 7 * time.Second}},
	} {
		for i, network := range []Network{{Most: 20 * time.Millisecond}, {Most: 100 * time.Millisecond, Lost: 0.01, Doubled: 0.02}} {
			c := Case{Name: name, Stream: FlatAndHot(size, 10, 100), Rules: rules, Instances: size.Instances, Clocks: clocks,
				Keys: 4096, Memory: 4 * megabyte, Parts: 2, Network: network, Seed: uint64(i)}
			t.Run(fmt.Sprintf("%s/%v", name, network), func(t *testing.T) {
				if r := holds(t, c); r.Must < 10 || r.Hot < 10 || r.Judged < 100 {
					t.Errorf("%d keys reached the threshold, %d were hot, %d bounds were judged", r.Must, r.Hot, r.Judged)
				}
			})
		}
	}
}
