package published

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hotparam/hotparam/rules"
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
	Route string     // of the rule
	Unit  rules.Unit // of Rate
	Rate  float64    // per second
	Keys  int64      // number of keys seen in the rule's longest window
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

// summaryJSON is what an aggregator sees apart from its hot keys:
//
//	{"near":[{"rule":"search-terms","key":"GET /search?q=tv","rate":124,"low":124,"ratio":0.62,"kind":"rate",…}],
//	 "traffic":[{"rule":"search-terms","route":"GET /search","unit":"requests","rate":3120,"keys":940}]}
type summaryJSON struct {
	Near    []nearJSON    `json:"near"`
	Traffic []trafficJSON `json:"traffic"`
}

type nearJSON struct {
	Rule  string  `json:"rule"`
	Key   string  `json:"key"`
	Rate  float64 `json:"rate"`
	Low   int64   `json:"low"`
	Ratio float64 `json:"ratio"`
	causeJSON
}

type trafficJSON struct {
	Rule  string  `json:"rule"`
	Route string  `json:"route"`
	Unit  string  `json:"unit"`
	Rate  float64 `json:"rate"`
	Keys  int64   `json:"keys"`
}

const maxRoute = 512 // bytes of a route

// EncodeSummary returns the value of an owner's summary.
func EncodeSummary(s *Summary) []byte {
	raw := summaryJSON{Near: []nearJSON{}, Traffic: []trafficJSON{}}
	for i := range s.Near[:min(len(s.Near), MaxNear)] {
		h := &s.Near[i]
		n := nearJSON{Rule: h.Rule, Key: h.Text, Rate: finite(h.Rate), Low: h.Low, Ratio: finite(h.Ratio)}
		if c := h.Cause; !c.IsZero() {
			n.causeJSON = causeJSON{c.Kind.String(), c.String(), c.Rate.N, c.Rate.Per.Milliseconds(), c.Unit.String()}
		}
		raw.Near = append(raw.Near, n)
	}
	for _, t := range s.Traffic[:min(len(s.Traffic), MaxTraffic)] {
		raw.Traffic = append(raw.Traffic, trafficJSON{t.Rule, cutText(t.Route, maxRoute), t.Unit.String(), finite(t.Rate), t.Keys})
	}
	return encode(raw)
}

var errSummary = errors.New("summary: a number is out of range, or there are too many entries")

// ParseSummary reads a value that [EncodeSummary] wrote.
func ParseSummary(value []byte) (s Summary, err error) {
	var raw summaryJSON
	if err := json.Unmarshal(value, &raw); err != nil {
		return Summary{}, fmt.Errorf("summary: %w", err)
	}
	if len(raw.Near) > MaxNear || len(raw.Traffic) > MaxTraffic {
		return Summary{}, errSummary
	}
	for i := range raw.Near {
		n := &raw.Near[i]
		if !rules.ValidRuleID(n.Rule) || n.Rate < 0 || n.Low < 0 || n.Ratio < 0 {
			return Summary{}, errSummary
		}
		s.Near = append(s.Near, Hot{Key: rules.Key{Rule: n.Rule, Text: n.Key}, Rate: n.Rate, Low: n.Low, High: n.Low, Ratio: n.Ratio, Cause: n.parse()})
	}
	for _, t := range raw.Traffic {
		unit, ok := parseName(t.Unit, rules.Units)
		if !ok || !rules.ValidRuleID(t.Rule) || t.Rate < 0 || t.Keys < 0 || len(t.Route) > maxRoute {
			return Summary{}, errSummary
		}
		s.Traffic = append(s.Traffic, Traffic{Rule: t.Rule, Route: t.Route, Unit: unit, Rate: t.Rate, Keys: t.Keys})
	}
	return s, nil
}
