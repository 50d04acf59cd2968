package bench

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Median is the middle of the values, or the mean of the two in the middle; 0 for
// none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Percentile is the nearest-rank percentile p, above 0 and at most 100, of sorted
// values: the least of them that p percent do not exceed. It is 0 for none.
func Percentile[T cmp.Ordered](sorted []T, p float64) T {
	var none T
	if len(sorted) == 0 {
		return none
	}
	// The product is a whole number more often than it is one in floating point.
	rank := int(math.Ceil(p/100*float64(len(sorted)) - 1e-9))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Bucket is one bar of a histogram: N values of at least From and below To.
type Bucket struct {
	From, To time.Duration
	N        int
}

// Histogram sorts values, none of them negative, into at most most buckets of one
// round width, empty ones included, from that of the smallest value to that of the
// largest.
func Histogram(values []time.Duration, most int) []Bucket {
	if len(values) == 0 || most < 1 {
		return nil
	}
	low, high := slices.Min(values), slices.Max(values)
	width := roundWidth(low, high, most)
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

// roundWidth is the least of 1, 2 and 5 times a power of ten, in nanoseconds, that
// needs no more than most buckets.
func roundWidth(low, high time.Duration, most int) time.Duration {
	for unit := time.Microsecond; ; unit *= 10 {
		for _, times := range []time.Duration{1, 2, 5} {
			width := times * unit
			if int64(high/width-low/width) < int64(most) {
				return width
			}
		}
	}
}
