package bench

import (
	"slices"
	"time"
)

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
