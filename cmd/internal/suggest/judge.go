package suggest

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// Param describes how the requests of a route concentrate on the values of a parameter.
type Param struct {
	Route    string  `json:"route"`
	Name     string  `json:"parameter"`
	Requests int64   `json:"requests"` // requests with the parameter
	Values   int     `json:"values"`   // number of distinct values
	Top      float64 `json:"top_share"`
	Top10    float64 `json:"top10_share"`
	TopValue string  `json:"top_value,omitempty"` // "" if it looks private; two quotes if the value is empty
	// Usual are the values that the proposed rule does not limit.
	Usual []Usual `json:"usual,omitempty"`
	// Peak is the highest number of requests for one value in a window of this length, without
	// the values in Usual.
	Peak   int64   `json:"peak"`
	Window float64 `json:"window_seconds"`
	// Threshold is the proposed threshold, "60/1m". If there is none, Why has the reason. Jump is
	// the multiple of its own past that a value must reach in addition, "4x". It is set if no
	// rule can name the usual values.
	Threshold string `json:"threshold,omitempty"`
	Jump      string `json:"jump,omitempty"`
	Why       string `json:"why,omitempty"`
	// Limit is the proposed limit. It equals the threshold. With a jump it is the highest count
	// of the usual values, if that is higher, since it would otherwise refuse their ordinary
	// requests when one jumps.
	Limit string `json:"limit,omitempty"`
	Hot   int    `json:"hot_keys"` // number of keys that it made hot, counted once each day
	// Refused is the number of Requests that the limit of the proposed rule alone refuses when
	// the log is replayed, and RefusedValues the number of their values.
	Refused       int64 `json:"refused"`
	RefusedValues int   `json:"refused_values"`

	window time.Duration
	all    int64   // highest number of requests for all values in a window, without usual values
	steady int64   // highest number of requests in a window for a usual value that no rule can name
	peaks  []int64 // peaks of the values in descending order, at least leastCount
	rule   string
}

// LeastRequests is the number of requests that a parameter needs in order to be judged.
const LeastRequests = 100

// jumpFactor is the proposed multiple of a value's own past. Usual values rarely reach it by day.
const jumpFactor = "4x"

const tooFew = "too few requests"

// Bounds for a proposal.
const (
	leastValues = 10
	fewValues   = 50 // with fewer values, ten must not have nearly all requests
	leastPeak   = 5  // of one value in the longest window
	clearPeak   = 20 // of one value in the chosen window
	standsOut   = 3  // as a multiple of the mean
)

// params judges all parameters, and returns them in descending order of requests.
func (s *survey) params() []*Param {
	var all []*Param
	for _, r := range s.all {
		for _, p := range r.params {
			all = append(all, s.judge(r, p))
		}
	}
	slices.SortFunc(all, func(a, b *Param) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Route, b.Route), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func (s *survey) judge(r *routePattern, p *routeParam) *Param {
	out := &Param{Route: r.pattern, Name: p.name, Requests: p.requests, Values: len(p.values)}
	counts := make([]int64, 0, len(p.values))
	var top int64
	for text, v := range p.values {
		counts = append(counts, v.requests)
		if v.requests > top || v.requests == top && text < out.TopValue {
			top, out.TopValue = v.requests, text
		}
	}
	out.TopValue = displayed(out.TopValue)
	total := p.all.requests
	out.Top, out.Top10 = float64(top)/float64(total), float64(firstTen(counts))/float64(total)
	usual := p.usual()
	i, peaks := s.window(p.values)
	if out.Why = s.judgeOthers(p, usual, out); out.Why == "" {
		i = slices.Index(windows[:], out.window)
		for _, u := range usual {
			if u.isWritable() {
				out.Usual = append(out.Usual, u)
			} else {
				out.Jump, out.steady = jumpFactor, max(out.steady, int64(p.values[u.Value].counts[i].peak))
			}
		}
		return out
	}
	out.Window, out.Peak = windows[i].Seconds(), peaks[i]
	return out
}

// judgeOthers judges a parameter by its values that are not usual. It returns the reason why
// no rule is proposed for it, or "".
func (s *survey) judgeOthers(p *routeParam, usual []Usual, out *Param) (why string) {
	others := maps.Clone(p.values)
	for _, u := range usual {
		delete(others, u.Value)
	}
	var requests, top int64
	counts := make([]int64, 0, len(others))
	for _, v := range others {
		counts = append(counts, v.requests)
		requests += v.requests
		top = max(top, v.requests)
	}
	i, peaks := s.window(others)
	out.window, out.Window, out.Peak = windows[i], windows[i].Seconds(), peaks[i]
	part := float64(requests+p.untold) / float64(p.all.requests)
	out.all = int64(math.Ceil(part * float64(p.all.counts[i].peak)))
	for _, v := range others {
		if peak := int64(v.counts[i].peak); peak >= leastCount {
			out.peaks = append(out.peaks, peak)
		}
	}
	slices.SortFunc(out.peaks, func(a, b int64) int { return cmp.Compare(b, a) })
	few := len(others) < leastValues || len(others) < fewValues && float64(firstTen(counts)) > 0.95*float64(requests)
	mean := float64(requests) / float64(len(others))
	beside := ""
	if len(usual) > 0 {
		beside = ", usual values aside"
	}
	switch {
	case p.requests < LeastRequests:
		return tooFew
	case len(p.values) == 1:
		return "always the same value"
	case few, isOption(usual):
		return "few values: an option, hot at all times or never"
	case requests < LeastRequests:
		return tooFew + beside
	case mean < 1.5 && out.Peak < leastPeak:
		return "nearly every request has a value of its own" + beside
	case out.Peak < leastPeak:
		return "no value comes often at a time" + beside
	case float64(top) < standsOut*mean && float64(out.Peak)*float64(len(others)) < standsOut*float64(out.all):
		return "no value is frequent enough" + beside
	}
	return ""
}

// firstTen returns the sum of the ten highest counts.
func firstTen(counts []int64) (sum int64) {
	slices.SortFunc(counts, func(a, b int64) int { return cmp.Compare(b, a) })
	for _, n := range counts[:min(10, len(counts))] {
		sum += n
	}
	return sum
}

// window chooses the shortest window in which some value reaches a significant count. The log
// must span at least two of them. It also returns the highest count of a value in each window.
func (s *survey) window(values map[string]*valueCounts) (best int, peaks [len(windows)]int64) {
	for _, v := range values {
		for i := range v.counts {
			peaks[i] = max(peaks[i], int64(v.counts[i].peak))
		}
	}
	for i, peak := range peaks {
		if i > 0 && s.last.Sub(s.first) < 2*windows[i] {
			break
		}
		best = i
		if peak >= clearPeak {
			break
		}
	}
	return best, peaks
}
