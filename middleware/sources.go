package middleware

import (
	"slices"
	"unsafe"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/keytext"
	"github.com/hotparam/hotparam/middleware/internal/header"
	"github.com/hotparam/hotparam/rules"
)

// readSources adds the parameters of those readers that have not read the request yet, and
// reports whether there were any.
func (r *reading) readSources(readers []*paramReader) (added bool) {
	for _, x := range readers {
		if slices.Contains(r.params.read, x) {
			continue
		}
		r.params.read = append(r.params.read, x)
		r.readSource(x)
		added = true
	}
	return added
}

// readSource adds the values of a reader's parameter.
func (r *reading) readSource(x *paramReader) {
	switch x.param.Source {
	case rules.Header:
		r.readHeader(x)
	case rules.Cookie:
		r.readCookie(x)
	case rules.Addr:
		r.readAddr(x)
	case rules.RPC:
		r.readField(x)
	case rules.Ctx:
		r.readCtx(x)
	case rules.Form:
		r.readForm(x)
	case rules.JSON:
		r.readJSON()
	}
}

func (r *reading) readHeader(x *paramReader) {
	in := r.in.http()
	if in == nil {
		return
	}
	if x.header == "Host" { // net/http removes it from the headers
		if in.Host != "" {
			r.addNamed(x, in.Host)
		}
		return
	}
	for _, value := range in.Header[x.header] {
		r.addNamed(x, value)
	}
}

func (r *reading) readCookie(x *paramReader) {
	in := r.in.http()
	if in == nil {
		return
	}
	for _, line := range in.Header["Cookie"] {
		for tail := line; ; {
			var value string
			var found bool
			if value, tail, found = header.Cookie(tail, x.param.Name); !found {
				break
			}
			r.addNamed(x, value)
		}
	}
}

func (r *reading) readAddr(x *paramReader) {
	p := &r.params
	if !p.client.read {
		p.client.read = true
		if in := r.in.http(); in != nil {
			p.client.ip, p.client.known = header.ClientAddr(x.client, in)
			if !p.client.known {
				r.absent.add(1)
			}
		}
	}
	if !p.client.known {
		return
	}
	var ok bool
	if p.text, ok = x.level.Append(p.text[:0], p.client.ip); ok {
		r.addNamed(x, unsafe.String(unsafe.SliceData(p.text), len(p.text))) // addNamed copies it
	}
}

func (r *reading) readField(x *paramReader) {
	if r.in.Field == nil {
		return
	}
	p := &r.params
	p.fields = r.in.Field(x.param.Name, p.fields[:0])
	for _, value := range p.fields {
		r.addNamed(x, value)
	}
	clear(p.fields)
}

func (r *reading) readCtx(x *paramReader) {
	if value := x.value(r.context()); value != "" {
		r.addNamed(x, value)
	} else {
		r.absent.add(1)
	}
}

// loadParams returns the parameters that a rule uses: the query, the path values by the
// rule's pattern, and the named parameters of other sources. Each is parsed once per request.
func (r *reading) loadParams(c *candidate) *keytext.Params { return r.load(c, c.readers) }

// loadHead implements loadParams without the parameters of the body.
func (r *reading) loadHead(c *candidate) *keytext.Params { return r.load(c, c.headReaders) }

func (r *reading) load(c *candidate, readers []*paramReader) *keytext.Params {
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

// ClientKey returns the identity to limit a client by, given its address with or without a
// port: the IPv4 address, or the IPv6 /64 ("2001:db8:1:2::/64"), since one client usually has
// all addresses of a /64. If addr is not an address, ClientKey returns it unchanged. Rules have
// the same identity as addr:ip.
func ClientKey(addr string) string {
	ip, ok := header.ParseNode(addr)
	if !ok {
		return addr
	}
	level, _ := base.ParseAddrLevel("ip")
	key, ok := level.Append(nil, ip)
	if !ok { // unreachable: every address has the level
		return addr
	}
	return string(key)
}
