package bench

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

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
