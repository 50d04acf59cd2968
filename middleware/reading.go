package middleware

import (
	"context"
	"net/netip"
	"unsafe"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/keytext"
	"github.com/hotparam/hotparam/middleware/internal/bodies"
	"github.com/hotparam/hotparam/rules"
)

// reading is what a request says: the parts of its input that rules use. Each is read when a rule
// first needs it.
type reading struct {
	in     Request
	route  *route
	absent *spreadCount // counts parameters that should be there
	bodies *bodies.Counts
	denied bool // a limit has denied the request, so its body is not read

	params params
	body   body
	redact *keytext.Redactor // nil until a value is redacted
	plain  []byte            // buffer for a key's text with plain values
	path   []byte            // buffer for the canonical path
}

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

// body is the state of a request's body. The body is examined when the first rule that
// depends on it needs it, and is read once.
type body struct {
	state  bodyState
	source rules.Source // the source of the body's parameters, if rules of the route name any
}

type bodyState uint8

const (
	bodyUnknown  bodyState = iota // not examined yet
	bodyAbsent                    // nothing in it that the route's rules could read
	bodyDeclared                  // a form or JSON that is not read yet
	bodyRead                      // its parameters are among the request's
	bodyUnread                    // it could not be read
)

// addNamed adds a value of the reader's parameter.
func (r *reading) addNamed(x *paramReader, value string) {
	p := x.param
	p.Value = value
	r.params.list.AddNamed(p)
}

// sortParams sorts parameters that were added in the order of keys. It redacts values and masks
// secrets within values first.
func (r *reading) sortParams(p *keytext.Params) {
	if set := r.route.set; set.redaction != nil {
		p.Redact(r.redactorOf(set))
	}
	p.Mask(&r.route.set.Secrets)
	p.Sort()
}

// redactorOf returns the request's redactor for the rules of set.
func (r *reading) redactorOf(set *ruleSet) *keytext.Redactor {
	if r.redact == nil || r.redact.Of() != set.redaction {
		r.redact = keytext.NewRedactor(set.redaction)
	}
	return r.redact
}

// context returns the request's context, or one that never ends.
func (r *reading) context() context.Context {
	if r.in.Context == nil {
		return context.Background()
	}
	return r.in.Context
}

// appendRedactedPath appends the request's path redacted, since any part of it may be a value.
func (r *reading) appendRedactedPath(dst []byte) []byte {
	r.params.text = base.AppendPath(r.params.text[:0], r.in.Path)
	return r.redactorOf(r.route.set).AppendPath(dst, unsafe.String(unsafe.SliceData(r.params.text), len(r.params.text)))
}

// plainText returns the text of one of the request's keys with plain values.
func (r *reading) plainText(c *candidate, text []byte) []byte {
	params := &r.params.list
	if c.matcher != nil {
		params = &r.params.custom
	}
	r.plain = params.AppendPlainText(r.plain[:0], unsafe.String(unsafe.SliceData(text), len(text)))
	return r.plain
}
