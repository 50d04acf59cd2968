package yardstick

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Each rank comes as often as Zipf's law says, within six standard deviations.
func TestZipfFollowsTheLaw(t *testing.T) {
	const draws = 300_000
	for _, s := range []float64{0, 0.5, 0.8, 1, 1.1, 1.4, 3} {
		for _, n := range []int{1, 2, 40} {
			t.Run(fmt.Sprintf("s=%v,n=%d", s, n), func(t *testing.T) {
				counts := make([]float64, n+1)
				z := NewZipf(NewRand(7), s, n)
				for range draws {
					counts[z.Draw()]++
				}
				sum := 0.0
				for k := 1; k <= n; k++ {
					sum += math.Pow(float64(k), -s)
				}
				for k := 1; k <= n; k++ {
					p := math.Pow(float64(k), -s) / sum
					want, deviation := draws*p, math.Sqrt(draws*p*(1-p))
					if math.Abs(counts[k]-want) > 6*deviation+1e-6 {
						t.Errorf("rank %d came %v times, want %.0f ± %.0f", k, counts[k], want, deviation)
					}
				}
			})
		}
	}
}

func TestZipfStaysInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 100_000_000).Draw(t, "n")
		s := rapid.Float64Range(0, 10).Draw(t, "s")
		seed := rapid.Uint64().Draw(t, "seed")
		a, b := NewZipf(NewRand(seed), s, n), NewZipf(NewRand(seed), s, n)
		for range 100 {
			k := a.Draw()
			if k < 1 || k > n {
				t.Fatalf("rank %d of %d", k, n)
			}
			if again := b.Draw(); again != k {
				t.Fatalf("the same seed gives %d and %d", k, again)
			}
		}
	})
}
