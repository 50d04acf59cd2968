package middleware

import "github.com/hotparam/hotparam"

// params are a request's parameters, parsed when a rule first needs them.
type params struct {
	list    hotparam.Params
	loaded  bool            // list is loaded
	pattern *hotparam.Route // the pattern whose path values list has, or nil
	custom  hotparam.Params // the one parameter of a matcher's key
}

// reset drops all parameters.
func (p *params) reset() {
	p.list.Reset()
	p.loaded, p.pattern = false, nil
}

// loadParams parses the query, and the path values by a pattern, once.
func (r *request) loadParams(pattern *hotparam.Route) *hotparam.Params {
	p := &r.params
	if p.loaded {
		if p.pattern == pattern {
			return &p.list
		}
		p.list.Reset()
	}
	p.loaded, p.pattern = true, pattern
	p.list.AddQuery(r.in.Query)
	if pattern != nil {
		pattern.Values(r.in.Path, p.list.AddPath)
	}
	p.list.Sort()
	return &p.list
}
