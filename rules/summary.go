package rules

import (
	"cmp"
	"slices"
)

// Summary is what an aggregator sees apart from the hot keys: the keys that are nearest to being
// hot, and the traffic of the rules.
type Summary struct {
	// Near are keys that are not hot, the nearest to a threshold first. Ratio is the part of the
	// threshold that the count has reached, below 1. Of the other fields Key, Low, High, Rate and
	// Cause are set.
	Near []Hot
	// Traffic has the rules that find hot keys.
	Traffic []Traffic
}

// Traffic is what is counted by a rule.
type Traffic struct {
	Rule  string
	Route string  // of the rule
	Unit  Unit    // of Rate
	Rate  float64 // per second
	Keys  int64   // number of keys seen in the rule's longest window
}

// Bounds of a [Summary].
const (
	MaxNear    = 20
	MaxTraffic = 100
)

// Merge adds the summary of another part of the keys.
func (s *Summary) Merge(part Summary) {
	for _, t := range part.Traffic {
		i := slices.IndexFunc(s.Traffic, func(o Traffic) bool { return o.Rule == t.Rule })
		if i < 0 {
			s.Traffic = append(s.Traffic, t)
			continue
		}
		s.Traffic[i].Rate += t.Rate
		s.Traffic[i].Keys += t.Keys
	}
	slices.SortFunc(s.Traffic, func(a, b Traffic) int { return cmp.Or(cmp.Compare(b.Rate, a.Rate), cmp.Compare(a.Rule, b.Rule)) })
	s.Traffic = s.Traffic[:min(len(s.Traffic), MaxTraffic)]
	s.Near = append(s.Near, part.Near...)
	slices.SortFunc(s.Near, func(a, b Hot) int { return cmp.Or(cmp.Compare(b.Ratio, a.Ratio), a.Key.Compare(b.Key)) })
	s.Near = s.Near[:min(len(s.Near), MaxNear)]
}
