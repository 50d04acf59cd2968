package yardstick

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{nil, 0}, {[]float64{3}, 3}, {[]float64{5, 1}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5},
	} {
		if got := Median(c.values); got != c.want {
			t.Errorf("Median(%v) = %v, want %v", c.values, got, c.want)
		}
	}
}

// The p-th percentile is the least value that at least p percent do not exceed.
func TestPercentileIsNearestRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.IntRange(0, 50), 1, 300).Draw(t, "values")
		p := rapid.IntRange(1, 100).Draw(t, "p")
		slices.Sort(values)
		got := Percentile(values, float64(p))
		var want int
		for _, v := range values {
			upTo := 0
			for _, w := range values {
				if w <= v {
					upTo++
				}
			}
			if 100*upTo >= p*len(values) {
				want = v
				break
			}
		}
		if got != want {
			t.Fatalf("percentile %d of %v is %d, want %d", p, values, got, want)
		}
	})
	if got := Percentile([]int{}, 99); got != 0 {
		t.Errorf("of nothing: %d, want 0", got)
	}
}
