package exact

import (
	"slices"
	"sort"
)

// series holds the counts of one key, or of several together.
type series struct {
	at  []int64 // times in nanoseconds, in order once sorted
	n   []int64
	sum []int64 // running totals, each including its own count
}

func (s *series) add(at, n int64) { s.at, s.n = append(s.at, at), append(s.n, n) }

// finish sorts the counts by time and adds them up.
func (s *series) finish() {
	if !slices.IsSorted(s.at) {
		order := make([]int, len(s.at))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return int(max(-1, min(1, s.at[a]-s.at[b]))) })
		at, n := slices.Clone(s.at), slices.Clone(s.n)
		for i, from := range order {
			s.at[i], s.n[i] = at[from], n[from]
		}
	}
	s.sum = make([]int64, len(s.n))
	total := int64(0)
	for i, n := range s.n {
		total += n
		s.sum[i] = total
	}
}

// before returns the sum of the counts before an instant.
func (s *series) before(at int64) int64 {
	if i := sort.Search(len(s.at), func(i int) bool { return s.at[i] >= at }); i > 0 {
		return s.sum[i-1]
	}
	return 0
}

// between returns the sum of the counts in [from, to).
func (s *series) between(from, to int64) int64 { return s.before(to) - s.before(from) }

// total returns the sum of all counts.
func (s *series) total() int64 {
	if len(s.sum) == 0 {
		return 0
	}
	return s.sum[len(s.sum)-1]
}
