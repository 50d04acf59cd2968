package decode

import (
	"math"
	"testing"
)

// Keys that share a slot each get their due share, even if they alternate at rates that resonate.
func TestFractionsAreFair(t *testing.T) {
	for _, parts := range [][]float64{{1. / 3}, {2. / 3, 1. / 3}, {0.9, 0.1}, {0.5, 0.5}, {1. / 3, 2. / 3, 1. / 9}, {0.25, 0.25, 0.25, 0.25}} {
		var f fractions
		const times = 100_000
		got := make([]int64, len(parts))
		for range times {
			for key, part := range parts {
				got[key] += f.carry(7, part)
			}
		}
		sum, all := 0.0, int64(0)
		for key, part := range parts {
			sum += part * times
			all += got[key]
			if math.Abs(float64(got[key])-part*times) > 0.02*times {
				t.Errorf("parts of %v: those of %.2f add up to %d of %d", parts, part, got[key], times)
			}
		}
		if math.Abs(sum-float64(all)-1) > 1+1e-3 { // two sums are kept, of less than 1
			t.Errorf("parts of %v add up to %d, want %v", parts, all, sum)
		}
	}
}
