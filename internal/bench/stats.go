package bench

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Median returns the middle value, or the mean of the two middle values. It returns 0 if there
// are none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Percentile returns the nearest-rank percentile p of sorted values: the least of them that p
// percent do not exceed. p must be above 0 and at most 100. It returns 0 if there are no values.
func Percentile[T cmp.Ordered](sorted []T, p float64) T {
	var none T
	if len(sorted) == 0 {
		return none
	}
	// In floating point the product may be slightly above a whole number.
	rank := int(math.Ceil(p/100*float64(len(sorted)) - 1e-9))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Micros formats a time in µs: "0.6 µs", "39.6 ms".
func Micros(us float64) string {
	if us >= 1000 {
		return fmt.Sprintf("%.1f ms", us/1000)
	}
	return fmt.Sprintf("%.1f µs", us)
}

// Bucket is one bar of a histogram: N values of at least From and below To.
type Bucket struct {
	From, To time.Duration
	N        int
}

// Histogram sorts non-negative values into buckets of equal round width, at most limit of them.
// The buckets range from that of the smallest value to that of the largest, including empty ones.
func Histogram(values []time.Duration, limit int) []Bucket {
	if len(values) == 0 || limit < 1 {
		return nil
	}
	low, high := slices.Min(values), slices.Max(values)
	width := roundWidth(low, high, limit)
	first := low.Truncate(width)
	buckets := make([]Bucket, int((high.Truncate(width)-first)/width)+1)
	for i := range buckets {
		from := first + time.Duration(i)*width
		buckets[i] = Bucket{From: from, To: from + width}
	}
	for _, v := range values {
		buckets[(v.Truncate(width)-first)/width].N++
	}
	return buckets
}

// roundWidth returns the least of 1, 2 and 5 times a power of ten, in nanoseconds, that needs at
// most limit buckets.
func roundWidth(low, high time.Duration, limit int) time.Duration {
	for unit := time.Microsecond; ; unit *= 10 {
		for _, times := range []time.Duration{1, 2, 5} {
			width := times * unit
			if int64(high/width-low/width) < int64(limit) {
				return width
			}
		}
	}
}
