package listed

import "github.com/hotparam/hotparam/internal/published"

// Near is a key that is not hot. Near is the part of the threshold that its count has reached, below
// 1.
type Near struct {
	Near float64 `json:"near"`
	Key  string  `json:"key"`
	Rule string  `json:"rule"`
	Rate float64 `json:"rate"` // per second
	Low  int64   `json:"low"`  // within Window
	Cause
}

// Traffic is what is counted by a rule.
type Traffic struct {
	Rule  string  `json:"rule"`
	Route string  `json:"route"`
	Unit  string  `json:"unit"`
	Rate  float64 `json:"rate"` // per second
	Keys  int64   `json:"keys"`
}

// Summary is what an aggregator sees apart from the hot keys.
type Summary struct {
	Near    []Near    `json:"near"`
	Traffic []Traffic `json:"traffic"`
}

// OfNear returns keys in their output form. The result is never nil.
func OfNear(keys []published.Hot) []Near {
	all := make([]Near, 0, len(keys))
	for i := range keys {
		h := &keys[i]
		all = append(all, Near{h.Ratio, h.Text, h.Rule, h.Rate, h.Low, CauseOf(h.Cause)})
	}
	return all
}

// OfSummary returns a summary in its output form.
func OfSummary(s *published.Summary) Summary {
	out := Summary{OfNear(s.Near), make([]Traffic, 0, len(s.Traffic))}
	for _, t := range s.Traffic {
		out.Traffic = append(out.Traffic, Traffic{t.Rule, t.Route, t.Unit.String(), t.Rate, t.Keys})
	}
	return out
}
