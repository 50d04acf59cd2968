package bench

import (
	"slices"
	"testing"
	"time"

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

func TestHistogramHoldsAllValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Map(rapid.Int64Range(0, 1e12), func(n int64) time.Duration { return time.Duration(n) }), 1, 200).Draw(t, "values")
		most := rapid.IntRange(1, 40).Draw(t, "most")
		buckets := Histogram(values, most)
		if len(buckets) > most {
			t.Fatalf("%d buckets, want at most %d", len(buckets), most)
		}
		for i, b := range buckets {
			n := 0
			for _, v := range values {
				if b.From <= v && v < b.To {
					n++
				}
			}
			if n != b.N {
				t.Fatalf("bucket %v has %d, want %d", b, b.N, n)
			}
			values = slices.DeleteFunc(slices.Clone(values), func(v time.Duration) bool { return b.From <= v && v < b.To })
			if i > 0 && b.From != buckets[i-1].To {
				t.Fatalf("%v does not follow on %v", b, buckets[i-1])
			}
		}
		if len(values) > 0 {
			t.Fatalf("in no bucket: %v", values)
		}
	})
	if got := Histogram(nil, 10); got != nil {
		t.Errorf("of nothing: %v", got)
	}
}
