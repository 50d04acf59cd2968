package yardstick

import (
	"cmp"
	"fmt"
	"math"
	"slices"
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
