package replay

import (
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/hotparam/hotparam/internal/accesslog"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// Values returns the headers and cookies that rules name. The log must be opened with them.
func Values(ruleset *rules.Rules) []string {
	var values []string
	add := func(source, name string) {
		if value := source + ":" + name; !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	for i := range ruleset.Rules {
		for _, p := range ruleset.Rules[i].Named() {
			switch p.Source {
			case rules.Header:
				add("header", strings.ToLower(p.Name))
			case rules.Cookie:
				add("cookie", p.Name)
			}
		}
	}
	return values
}

// LogValues passes the headers, cookies and addresses of a log to the guard.
type LogValues struct {
	names []string
	seen  []bool
	addr  bool // whether some rule needs the client's address
}

// NewLogValues returns the values that rules need. The log must be opened with [Values] of the
// rules.
func NewLogValues(ruleset *rules.Rules) *LogValues {
	v := &LogValues{names: Values(ruleset)}
	v.seen = make([]bool, len(v.names))
	for i := range ruleset.Rules {
		v.addr = v.addr || slices.ContainsFunc(ruleset.Rules[i].Named(), func(p rules.Param) bool { return p.Source == rules.Addr })
	}
	return v
}

// Add adds the headers, the cookies and the address of the entry to the request.
func (v *LogValues) Add(req *middleware.Request, e *accesslog.Entry) {
	if len(v.names) == 0 && !v.addr {
		return
	}
	r := &http.Request{Method: e.Method, URL: &url.URL{Path: req.Path, RawQuery: req.Query}, Header: make(http.Header), RemoteAddr: e.Addr}
	if path, err := url.PathUnescape(req.Path); err == nil {
		r.URL.Path, r.URL.RawPath = path, req.Path
	}
	for i, name := range v.names {
		value, ok := e.Value(i)
		if !ok {
			continue
		}
		v.seen[i] = true
		if source, name, _ := strings.Cut(name, ":"); source == "header" {
			r.Header[textproto.CanonicalMIMEHeaderKey(name)] = []string{value}
		} else {
			r.AddCookie(&http.Cookie{Name: name, Value: value})
		}
	}
	req.HTTP = r
}

// notTold returns the values that no request had.
func (v *LogValues) notTold() string {
	var names []string
	for i, name := range v.names {
		if !v.seen[i] {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}
