package published

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hotparam/hotparam/rules"
)

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
func EncodeSummary(s *rules.Summary) []byte {
	raw := summaryJSON{Near: []nearJSON{}, Traffic: []trafficJSON{}}
	for i := range s.Near[:min(len(s.Near), rules.MaxNear)] {
		h := &s.Near[i]
		n := nearJSON{Rule: h.Rule, Key: h.Text, Rate: finite(h.Rate), Low: h.Low, Ratio: finite(h.Ratio)}
		if c := h.Cause; !c.IsZero() {
			n.causeJSON = causeJSON{c.Kind.String(), c.String(), c.Rate.N, c.Rate.Per.Milliseconds(), c.Unit.String()}
		}
		raw.Near = append(raw.Near, n)
	}
	for _, t := range s.Traffic[:min(len(s.Traffic), rules.MaxTraffic)] {
		raw.Traffic = append(raw.Traffic, trafficJSON{t.Rule, cutText(t.Route, maxRoute), t.Unit.String(), finite(t.Rate), t.Keys})
	}
	return encode(raw)
}

var errSummary = errors.New("summary: a number is out of range, or there are too many entries")

// ParseSummary reads a value that [EncodeSummary] wrote.
func ParseSummary(value []byte) (s rules.Summary, err error) {
	var raw summaryJSON
	if err := json.Unmarshal(value, &raw); err != nil {
		return rules.Summary{}, fmt.Errorf("summary: %w", err)
	}
	if len(raw.Near) > rules.MaxNear || len(raw.Traffic) > rules.MaxTraffic {
		return rules.Summary{}, errSummary
	}
	for i := range raw.Near {
		n := &raw.Near[i]
		if !rules.ValidRuleID(n.Rule) || n.Rate < 0 || n.Low < 0 || n.Ratio < 0 {
			return rules.Summary{}, errSummary
		}
		s.Near = append(s.Near, rules.Hot{Key: rules.Key{Rule: n.Rule, Text: n.Key}, Rate: n.Rate, Low: n.Low, High: n.Low, Ratio: n.Ratio, Cause: n.parse()})
	}
	for _, t := range raw.Traffic {
		unit, ok := rules.ParseUnit(t.Unit)
		if !ok || !rules.ValidRuleID(t.Rule) || t.Rate < 0 || t.Keys < 0 || len(t.Route) > maxRoute {
			return rules.Summary{}, errSummary
		}
		s.Traffic = append(s.Traffic, rules.Traffic{Rule: t.Rule, Route: t.Route, Unit: unit, Rate: t.Rate, Keys: t.Keys})
	}
	return s, nil
}
