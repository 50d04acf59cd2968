package exact

import (
	"slices"
	"sort"
)

// countSeries holds the counts of one key, or of several together.
type countSeries struct {
	times      []int64 // times in nanoseconds, in order once sorted
	counts     []int64
	cumulative []int64 // running totals, each including its own count
}

func (s *countSeries) add(instant, n int64) {
	s.times, s.counts = append(s.times, instant), append(s.counts, n)
}

// finish sorts the counts by time and adds them up.
func (s *countSeries) finish() {
	if !slices.IsSorted(s.times) {
		order := make([]int, len(s.times))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return int(max(-1, min(1, s.times[a]-s.times[b]))) })
		times, counts := slices.Clone(s.times), slices.Clone(s.counts)
		for i, from := range order {
			s.times[i], s.counts[i] = times[from], counts[from]
		}
	}
	s.cumulative = make([]int64, len(s.counts))
	total := int64(0)
	for i, n := range s.counts {
		total += n
		s.cumulative[i] = total
	}
}

// sumBefore returns the sum of the counts before an instant.
func (s *countSeries) sumBefore(instant int64) int64 {
	if i := sort.Search(len(s.times), func(i int) bool { return s.times[i] >= instant }); i > 0 {
		return s.cumulative[i-1]
	}
	return 0
}

// sumBetween returns the sum of the counts in [from, to).
func (s *countSeries) sumBetween(from, to int64) int64 { return s.sumBefore(to) - s.sumBefore(from) }

// total returns the sum of all counts.
func (s *countSeries) total() int64 {
	if len(s.cumulative) == 0 {
		return 0
	}
	return s.cumulative[len(s.cumulative)-1]
}
