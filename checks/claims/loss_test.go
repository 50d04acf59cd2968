//go:build !race

package claims

import (
	"fmt"
	"testing"
	"time"
)

// Later packets make up for lost ones. Nearly all bounds of hot keys are known and narrow, and
// keys cool when they would without loss. Other tests lose packets under the race detector, which
// would make these twenty times as slow and finds little in a single goroutine.
func TestLossHeals(t *testing.T) {
	t.Parallel()
	for _, instances := range []int{10, 100} {
		size := StreamSize{Rate: 4000, Keys: 3000, Instances: instances, Length: 20 * time.Second}
		rules := []HotRule{usual(100, time.Second), usual(1000, 10*time.Second)}
		if instances > 10 {
			rules = rules[:1] // sums are of all rules: what is missing of one may be of the other
		}
		lossless := int64(0)
		for _, network := range []Network{
			{Most: 20 * time.Millisecond},
			{Most: 20 * time.Millisecond, Lost: 0.002, Doubled: 0.02},
			{Most: 20 * time.Millisecond, Lost: 0.02, Doubled: 0.02},
			{Most: 20 * time.Millisecond, Lost: 0.05, Doubled: 0.02},
		} {
			t.Run(fmt.Sprintf("%d instances/%v", instances, network), func(t *testing.T) {
				if testing.Short() && (instances > 10 || network.Lost != 0.02 && network.Lost != 0) {
					t.Skip("left out with -short")
				}
				r := holds(t, Case{
					Name: "flat and hot", Stream: FlatAndHot(size, 30, 150), Rules: rules,
					Instances: instances, Keys: 1 << 13, Memory: 16 * megabyte, Parts: 2, Lines: 2000, Network: network, Seed: 1,
				})
				// A second loss in a row becomes known after the lag. With a hundred instances
				// that happens to one of them more often than with ten. The next packet that
				// arrives reveals the loss but not its beginning, as other packets of the last
				// flush may be lost, too. So a window that is complete may seem to lack counts.
				maxVague := r.Windows/100 + int64(network.Lost*float64(r.Windows))
				if r.Windows < 300 || r.Vague > maxVague {
					t.Errorf("of %d windows the bounds of %d are not known, or worth nothing", r.Windows, r.Vague)
				}
				if network.Lost == 0 {
					lossless = r.LastCool
				}
				if late := time.Duration(r.LastCool - lossless); late > time.Second {
					t.Errorf("all is cool %v later than without loss", late)
				}
				t.Logf("%d of %d windows are vague; all is cool %v later", r.Vague, r.Windows, time.Duration(r.LastCool-lossless))
			})
		}
	}
}
