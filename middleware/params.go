package middleware

import (
	"net/netip"

	"github.com/hotparam/hotparam/internal/keytext"
	"github.com/hotparam/hotparam/rules"
)

// params are a request's parameters, parsed when a rule first needs them.
type params struct {
	list    keytext.Params
	loaded  bool           // list has the query
	pattern *rules.Route   // the pattern whose path values list has, or nil
	custom  keytext.Params // the one parameter of a matcher's key
	read    []*paramReader // the readers whose parameters list has
	client  requestAddr
	text    []byte   // buffer for the text of an address
	fields  []string // buffer for the values of a field
}

// requestAddr is the address of the request's client, once it has been read.
type requestAddr struct {
	ip          netip.Addr
	read, known bool
}

// reset drops all parameters. It writes only what was written.
func (p *params) reset() {
	p.list.Reset()
	p.loaded, p.pattern = false, nil
	if len(p.read) > 0 {
		clear(p.read)
		p.read, p.client = p.read[:0], requestAddr{}
	}
}

// loadParams returns the parameters that a rule uses: the query, the path values by the
// rule's pattern, and the named parameters of other sources. Each is parsed once per request.
func (r *request) loadParams(c *candidate) *keytext.Params { return r.load(c, c.readers) }

// loadHead implements loadParams without the parameters of the body.
func (r *request) loadHead(c *candidate) *keytext.Params { return r.load(c, c.headReaders) }

func (r *request) load(c *candidate, readers []*paramReader) *keytext.Params {
	p := &r.params
	if p.loaded && p.pattern == c.values && len(readers) == 0 {
		return &p.list
	}
	changed := !p.loaded
	if !p.loaded {
		p.loaded = true
		p.list.AddQuery(r.in.Query)
	}
	if p.pattern != c.values {
		if p.pattern != nil {
			p.list.Drop(rules.Path)
		}
		if p.pattern, changed = c.values, true; p.pattern != nil {
			p.pattern.Values(r.in.Path, p.list.AddPath)
		}
	}
	if len(readers) > 0 && r.readSources(readers) {
		changed = true
	}
	if changed {
		r.sortParams(&p.list)
	}
	return &p.list
}
