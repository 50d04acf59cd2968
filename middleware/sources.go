package middleware

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"unsafe"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// paramReader reads one parameter that rules name from a source other than the query and the
// path. A request is read once by each reader of the rules that it may match.
type paramReader struct {
	param  rules.Param // without a value
	read   func(*request, *paramReader)
	header string                       // canonical, as in http.Header
	level  base.AddrLevel               // level of an address
	steps  []base.JSONPathStep          // path of a value in JSON
	value  func(context.Context) string // function of a [WithParam]
	client *rules.Client
}

// sourceRow has the functions that read one source.
type sourceRow struct {
	prepare func(*paramReader, *options) error // nil if there is nothing to prepare
	read    func(*request, *paramReader)
}

// sourceRows has a row for each source that is read only for rules that name it.
var sourceRows = map[rules.Source]sourceRow{
	rules.Header: {prepareHeader, readHeader},
	rules.Cookie: {nil, readCookie},
	rules.Addr:   {prepareAddr, readAddr},
	rules.RPC:    {nil, readField},
	rules.Ctx:    {prepareCtx, readCtx},
	rules.Form:   {nil, readForm},
	rules.JSON:   {prepareJSON, readJSON},
}

// WithParam makes rules take the parameter ctx:name, such as a user, a tenant or a verified
// claim, from f. f is called with the request's context, at most once for a request, and only
// if a rule that the request may match names the parameter. An empty value makes no key and
// is counted in [Stats].Absent: if the guard runs before authentication, requests without a
// user are not limited by such rules. If f panics, the request passes.
func WithParam(name string, f func(context.Context) string) Option {
	return func(o *options) {
		if o.params == nil {
			o.params = make(map[string]func(context.Context) string)
		}
		o.params[name] = f
	}
}

// WithParams makes rules take each parameter ctx:name without a [WithParam] from f, which is
// called like the function of WithParam. It is for programs that do not know the names in
// advance, since rules that are loaded later name others.
func WithParams(f func(ctx context.Context, name string) string) Option {
	return func(o *options) { o.anyParam = f }
}

// addReaders adds a reader to the rule for each parameter that it names. Rules that name the
// same parameter share the reader.
func (s *ruleSet) addReaders(r *rule, o *options) error {
	for _, p := range r.Named() {
		row, found := sourceRows[p.Source]
		if !found {
			continue
		}
		i := slices.IndexFunc(s.readers, func(x *paramReader) bool { return x.param == p })
		if i < 0 {
			x := &paramReader{param: p, read: row.read, client: &s.Client}
			if row.prepare != nil {
				if err := row.prepare(x, o); err != nil {
					return err
				}
			}
			i = len(s.readers)
			s.readers = append(s.readers, x)
		}
		if x := s.readers[i]; !slices.Contains(r.readers, x) {
			r.readers = append(r.readers, x)
		}
	}
	var ofBody []*paramReader
	for _, x := range r.readers {
		if x.param.Source.ReadsBody() {
			ofBody = append(ofBody, x)
		} else {
			r.headReaders = append(r.headReaders, x)
		}
	}
	r.readers = slices.Concat(r.headReaders, ofBody)
	r.body = bodySources(r.By.Names) | bodySources(r.needs)
	r.keyReaders = slices.ContainsFunc(r.By.Names, func(p rules.Param) bool { return sourceRows[p.Source].read != nil })
	return nil
}

// readSources adds the parameters of those readers that have not read the request yet, and
// reports whether there were any.
func (r *request) readSources(readers []*paramReader) (added bool) {
	for _, x := range readers {
		if slices.Contains(r.params.read, x) {
			continue
		}
		r.params.read = append(r.params.read, x)
		x.read(r, x)
		added = true
	}
	return added
}

// addNamed adds a value of the reader's parameter.
func (r *request) addNamed(x *paramReader, value string) {
	p := x.param
	p.Value = value
	r.params.list.AddNamed(p)
}

func prepareHeader(x *paramReader, _ *options) error {
	x.header = http.CanonicalHeaderKey(x.param.Name)
	return nil
}

func readHeader(r *request, x *paramReader) {
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

func readCookie(r *request, x *paramReader) {
	in := r.in.http()
	if in == nil {
		return
	}
	for _, line := range in.Header["Cookie"] {
		for tail := line; ; {
			var value string
			var found bool
			if value, tail, found = nextCookie(tail, x.param.Name); !found {
				break
			}
			r.addNamed(x, value)
		}
	}
}

func prepareAddr(x *paramReader, _ *options) error {
	level, ok := base.ParseAddrLevel(x.param.Name)
	if !ok {
		return fmt.Errorf("an address has no level %q: %s", x.param.Name, base.AddrLevelHint)
	}
	x.level = level
	return nil
}

func readAddr(r *request, x *paramReader) {
	p := &r.params
	if !p.client.read {
		p.client.read = true
		if in := r.in.http(); in != nil {
			p.client.ip, p.client.known = clientAddr(x.client, in)
			if !p.client.known {
				r.guard.absent.add(1)
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

func readField(r *request, x *paramReader) {
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

func prepareCtx(x *paramReader, o *options) error {
	name := x.param.Name
	if x.value = o.params[name]; x.value == nil && o.anyParam != nil {
		x.value = func(ctx context.Context) string { return o.anyParam(ctx, name) }
	}
	if x.value == nil {
		return fmt.Errorf("no function has ctx:%s: give the guard middleware.WithParam(%q, …)", x.param.Name, x.param.Name)
	}
	return nil
}

func readCtx(r *request, x *paramReader) {
	if value := x.value(r.context()); value != "" {
		r.addNamed(x, value)
	} else {
		r.guard.absent.add(1)
	}
}
