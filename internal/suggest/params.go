package suggest

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/internal/accesslog"
)

const (
	// maxValues bounds the memory for values, about 100 bytes each with their text. Those that
	// come when there are so many are not told apart.
	maxValues = 1 << 20
	// maxParams bounds the parameters of a route.
	maxParams = 200
	// maxText is what is kept of a value.
	maxText = 128
)

// windows are those that a threshold may have, the shortest first.
var windows = [...]time.Duration{time.Second, 10 * time.Second, time.Minute, 10 * time.Minute}

// param is a parameter of a route.
type param struct {
	name     string // as rules write it
	requests int64
	untold   int64 // of values that were not told apart
	values   map[string]*value
	all      value // of all values together
}

// value counts one, in windows that follow each other. So a peak may be half of what it is in
// a sliding window: it says where to begin, and a replay what is true.
type value struct {
	requests int64
	slots    [len(windows)]slot
}

type slot struct {
	number  int64
	n, peak int32
}

func (v *value) count(at time.Time) {
	v.requests++
	for i, w := range windows {
		s, number := &v.slots[i], at.UnixNano()/int64(w)
		if s.number != number {
			s.number, s.n = number, 0
		}
		s.n++
		s.peak = max(s.peak, s.n)
	}
}

// survey is what a log has.
type survey struct {
	routes      routes
	all         []*route
	requests    int64
	first, last time.Time
	secret      map[string]bool // parameters that look secret, by their names
	values      int
	full        bool
}

// look goes through the log twice: for its routes, then for their parameters.
func look(log *accesslog.Kept, entries func(func(*accesslog.Entry)) error) (*survey, error) {
	s := &survey{secret: make(map[string]bool)}
	err := entries(func(e *accesslog.Entry) {
		if s.requests++; s.requests == 1 {
			s.first = e.Time
		}
		s.last = e.Time
		path, _, _ := strings.Cut(e.Target, "?")
		if strings.HasPrefix(path, "/") {
			s.routes.add(e.Method, path)
		}
	})
	if err != nil {
		return nil, err
	}
	s.all = s.routes.settle()
	var room []string
	err = entries(func(e *accesslog.Entry) {
		path, query, _ := strings.Cut(e.Target, "?")
		if !strings.HasPrefix(path, "/") {
			return
		}
		r, values := s.routes.find(e.Method, path, room[:0])
		if room = values; r == nil {
			return
		}
		r.seen++
		for i, v := range values {
			if i < len(r.names) {
				s.count(r, "path:"+r.names[i], v, e.Time)
			}
		}
		for pair := range strings.SplitSeq(query, "&") {
			name, v, _ := strings.Cut(pair, "=")
			if name == "" {
				continue
			}
			if plain, err := url.QueryUnescape(name); err == nil {
				name = plain
			}
			s.count(r, queryName(name), v, e.Time)
		}
	})
	return s, err
}

// queryName is how rules name a parameter of the query.
func queryName(name string) string {
	if strings.Contains(name, ":") {
		return "query:" + name
	}
	return name
}

func (s *survey) count(r *route, name, text string, at time.Time) {
	plain := name[strings.IndexByte(name, ':')+1:]
	if (&hotparam.Secrets{}).Hides(plain) {
		s.secret[name] = true
		return
	}
	p := r.params[name]
	if p == nil {
		if len(r.params) >= maxParams {
			return
		}
		p = &param{name: name, values: make(map[string]*value)}
		r.params[name] = p
	}
	p.requests++
	p.all.count(at)
	text = text[:min(len(text), maxText)]
	v := p.values[text]
	if v == nil {
		if s.values >= maxValues {
			s.full = true
			p.untold++
			return
		}
		s.values++
		v = &value{}
		p.values[strings.Clone(text)] = v
	}
	v.count(at)
}

// Param says how the requests of a route gather on the values of a parameter.
type Param struct {
	Route    string  `json:"route"`
	Name     string  `json:"parameter"`
	Requests int64   `json:"requests"` // that have it
	Values   int     `json:"values"`   // distinct ones
	Top      float64 `json:"top_share"`
	Top10    float64 `json:"top10_share"`
	TopValue string  `json:"top_value,omitempty"` // empty where it looks secret
	// Peak is the most requests of one value in a window of this length.
	Peak   int64   `json:"peak"`
	Window float64 `json:"window_seconds"`
	// Threshold is what is proposed, "60/1m"; where nothing is, Why says why.
	Threshold string `json:"threshold,omitempty"`
	Why       string `json:"why,omitempty"`
	Hot       int    `json:"hot_keys"` // that it made hot, counted once each day

	window time.Duration
	all    int64   // the most requests of all values in a window
	peaks  []int64 // of the values, the highest first; only those that a threshold may reach
	rule   string
}

// LeastRequests is how many requests must have a parameter for it to be judged.
const LeastRequests = 100

// Bounds of what is proposed.
const (
	leastValues = 10
	fewValues   = 50 // if ten of them have nearly all requests
	leastPeak   = 5  // of a value in the longest window
	clearPeak   = 20 // of a value in the window that is taken
	standsOut   = 3  // times the mean
)

// params judges all parameters, those with most requests first.
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

func (s *survey) judge(r *route, p *param) *Param {
	counts := make([]int64, 0, len(p.values))
	var top *value
	var topText string
	peaks := [len(windows)]int64{}
	for text, v := range p.values {
		counts = append(counts, v.requests)
		if top == nil || v.requests > top.requests || v.requests == top.requests && text < topText {
			top, topText = v, text
		}
		for i := range v.slots {
			peaks[i] = max(peaks[i], int64(v.slots[i].peak))
		}
	}
	slices.SortFunc(counts, func(a, b int64) int { return cmp.Compare(b, a) })
	var ten int64
	for _, n := range counts[:min(10, len(counts))] {
		ten += n
	}
	out := &Param{
		Route: r.pattern, Name: p.name, Requests: p.requests, Values: len(counts),
		Top: float64(top.requests) / float64(p.requests), Top10: float64(ten) / float64(p.requests), TopValue: shown(topText),
	}
	i := s.window(peaks[:])
	out.window, out.Window, out.Peak, out.all = windows[i], windows[i].Seconds(), peaks[i], int64(p.all.slots[i].peak)
	for _, v := range p.values {
		if peak := int64(v.slots[i].peak); peak >= leastCount {
			out.peaks = append(out.peaks, peak)
		}
	}
	slices.SortFunc(out.peaks, func(a, b int64) int { return cmp.Compare(b, a) })
	switch mean := float64(p.requests) / float64(len(counts)); {
	case p.requests < LeastRequests:
		out.Why = "too few requests"
	case len(counts) == 1:
		out.Why = "always the same value"
	case len(counts) < leastValues, len(counts) < fewValues && out.Top10 > 0.95:
		out.Why = "few values: an option, hot at all times or never"
	case mean < 1.5 && out.Peak < leastPeak:
		out.Why = "nearly every request has a value of its own"
	case out.Peak < leastPeak:
		out.Why = "no value comes often at a time"
	case float64(top.requests) < standsOut*mean && float64(out.Peak)*float64(len(counts)) < standsOut*float64(out.all):
		out.Why = "no value stands out"
	}
	return out
}

// window chooses the shortest in which some value comes often enough for its count to mean
// something, and which the log has some of.
func (s *survey) window(peaks []int64) int {
	best := 0
	for i, peak := range peaks {
		if i > 0 && s.last.Sub(s.first) < 2*windows[i] {
			break
		}
		best = i
		if peak >= clearPeak {
			break
		}
	}
	return best
}

// shown is a value for people, empty if it looks like a token: nobody needs to read it.
func shown(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		text = plain
	}
	digits, letters := 0, 0
	for i := range len(text) {
		switch c := text[i]; {
		case '0' <= c && c <= '9':
			digits++
		case 'a' <= c|0x20 && c|0x20 <= 'z':
			letters++
		case c == ' ':
			return short(text)
		}
	}
	if len(text) >= 20 && digits >= 3 && letters >= 3 || strings.HasPrefix(text, "eyJ") || strings.Contains(text, "@") {
		return ""
	}
	return short(text)
}

func short(text string) string {
	const most = 40
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
