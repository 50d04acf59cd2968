package suggest

import (
	"net/url"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/accesslog"
	"github.com/hotparam/hotparam/rules"
)

const (
	// maxValues bounds the memory for values, about 100 bytes each with their text. Beyond it,
	// further values are not distinguished.
	maxValues = 1 << 20
	// maxParams bounds the parameters of a route.
	maxParams = 200
	// maxText is the number of bytes that are kept of a value.
	maxText = 128
)

// windows are the possible windows of a threshold, shortest first.
var windows = [...]time.Duration{time.Second, 10 * time.Second, time.Minute, 10 * time.Minute}

// routeParam is a parameter of a route.
type routeParam struct {
	name     string // name in the syntax of rules
	requests int64
	last     int64 // number of the last request
	untold   int64 // requests whose values were not distinguished
	values   map[string]*valueCounts
	all      valueCounts  // counts of all values together
	parts    [parts]int32 // requests by part of the log
}

// survey holds the routes, parameters and values of a log.
type survey struct {
	routes      routes
	all         []*routePattern
	requests    int64
	first, last time.Time
	secret      map[string]bool // names of parameters that look secret
	values      int
	full        bool
}

// reading calls f for each entry of the log.
type reading func(f func(*accesslog.Entry)) error

// look reads the log three times: for its routes, for their parameters, and for the distribution
// of frequent values over the parts of the log.
func look(entries reading) (*survey, error) {
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
	if err := s.parameters(entries, s.serve, s.count); err != nil {
		return nil, err
	}
	for _, r := range s.all {
		for _, p := range r.params {
			for _, v := range p.values {
				if p.last = 0; p.mayBeUsual(v) {
					v.parts = new([parts]int32)
				}
			}
		}
	}
	return s, s.parameters(entries, func(*routePattern, *accesslog.Entry) {}, s.countParts)
}

// parameters calls each with each request of a route, and f with each of its parameters: its name in
// the syntax of rules, its value, and the time and number of the request.
func (s *survey) parameters(entries reading, each func(*routePattern, *accesslog.Entry), f func(r *routePattern, name, text string, t time.Time, number int64)) error {
	var room []string
	var number int64
	return entries(func(e *accesslog.Entry) {
		number++
		path, query, _ := strings.Cut(e.Target, "?")
		if !strings.HasPrefix(path, "/") {
			return
		}
		r, values := s.routes.findRoute(e.Method, path, room[:0])
		if room = values; r == nil {
			return
		}
		each(r, e)
		for i, v := range values {
			if i < len(r.names) {
				f(r, "path:"+r.names[i], plainText(v, url.PathUnescape), e.Time, number)
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
			f(r, queryName(name), plainText(v, url.QueryUnescape), e.Time, number)
		}
	})
}

// queryName returns the name of a query parameter in the syntax of rules.
func queryName(name string) string {
	if strings.Contains(name, ":") {
		return "query:" + name
	}
	return name
}

func (s *survey) count(r *routePattern, name, text string, t time.Time, number int64) {
	plain := name[strings.IndexByte(name, ':')+1:]
	if (&rules.Secrets{}).Hides(plain) {
		s.secret[name] = true
		return
	}
	p := r.params[name]
	if p == nil {
		if len(r.params) >= maxParams {
			return
		}
		p = &routeParam{name: name, values: make(map[string]*valueCounts)}
		r.params[name] = p
	}
	if p.last != number { // a request may have several values
		p.last = number
		p.requests++
	}
	p.all.count(t)
	v := p.values[text]
	if v == nil {
		if s.values >= maxValues {
			s.full = true
			p.untold++
			return
		}
		s.values++
		v = &valueCounts{}
		p.values[strings.Clone(text)] = v
	}
	v.count(t)
}

// countParts counts the requests of a parameter, and of its frequent values, by part of the log.
func (s *survey) countParts(r *routePattern, name, text string, t time.Time, number int64) {
	p := r.params[name]
	if p == nil {
		return // secret, or beyond maxParams
	}
	part := 0
	if span := s.last.Sub(s.first); span > 0 {
		part = min(int(float64(t.Sub(s.first))/float64(span)*parts), parts-1)
	}
	if p.last != number {
		p.last = number
		p.parts[part]++
	}
	if v := p.values[text]; v != nil && v.parts != nil {
		v.parts[part]++
	}
}
