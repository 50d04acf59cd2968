package middleware

import (
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

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

// unreadReason is the reason why a body could not be read.
type unreadReason uint8

const (
	isRead     unreadReason = iota
	tooLarge                // larger than bodies.max
	encoded                 // with a Content-Encoding
	malformed               // violates the syntax of its type
	noRoom                  // would exceed bodies.total
	readFailed              // an error of the connection, or the end of the request's context
	upgraded                // another protocol follows
	unreadReasons
)

// Unread counts requests whose body a rule needed but which could not be read, by
// reason.
type Unread struct {
	TooLarge  int64 // larger than the maximum
	Encoded   int64 // compressed
	Malformed int64 // broken syntax
	NoRoom    int64 // too many bytes of other bodies were held
	Failed    int64 // the connection or the request's context ended
	Upgraded  int64 // the request switches to another protocol
}

// bodies counts the bytes of bodies that a guard holds, and the bodies read and unread.
type bodies struct {
	held   atomic.Int64
	read   atomic.Int64
	unread [unreadReasons]atomic.Int64
}

func (b *bodies) unreadStats() Unread {
	n := func(r unreadReason) int64 { return b.unread[r].Load() }
	return Unread{
		TooLarge: n(tooLarge), Encoded: n(encoded), Malformed: n(malformed),
		NoRoom: n(noRoom), Failed: n(readFailed), Upgraded: n(upgraded),
	}
}

// sourceSet is a set of sources.
type sourceSet uint16

func (s sourceSet) has(x rules.Source) bool { return s&(1<<x) != 0 }

// bodySources returns the sources of params that are parts of the body.
func bodySources(params []rules.Param) (s sourceSet) {
	for _, p := range params {
		if p.Source.ReadsBody() {
			s |= 1 << p.Source
		}
	}
	return s
}

// lookAtBody determines the state of the body from the request's header, without reading it.
func (r *request) lookAtBody() bodyState {
	b := &r.body
	if b.state != bodyUnknown {
		return b.state
	}
	b.state = bodyAbsent
	in := r.in.http()
	if in == nil || in.Body == nil || in.Body == http.NoBody {
		return b.state
	}
	source, ok := declaredSource(in)
	if !ok || !r.route.bodies.has(source) {
		return b.state
	}
	b.state, b.source = bodyDeclared, source
	switch {
	case isUpgrade(in):
		r.endUnread(upgraded)
	case isEncoded(in.Header):
		r.endUnread(encoded)
	case in.ContentLength > r.route.set.bodyLimits.Max:
		r.endUnread(tooLarge)
	}
	return b.state
}

// declaredSource returns the source of the parameters in a body of the request's type. It
// ignores the parameters after the type, however malformed, as handlers do. As in
// [http.Request.Form], a url-encoded form counts only with POST, PUT and PATCH.
func declaredSource(in *http.Request) (source rules.Source, ok bool) {
	name := strings.TrimLeft(in.Header.Get("Content-Type"), " \t")
	if i := strings.IndexAny(name, "; \t,"); i >= 0 {
		name = name[:i]
	}
	const suffix = "+json"
	switch {
	case strings.EqualFold(name, "application/x-www-form-urlencoded"):
		m := in.Method
		return rules.Form, m == http.MethodPost || m == http.MethodPut || m == http.MethodPatch
	case strings.EqualFold(name, multipartType):
		return rules.Form, true
	case strings.EqualFold(name, "application/json"), len(name) > len(suffix) && strings.EqualFold(name[len(name)-len(suffix):], suffix):
		return rules.JSON, true
	}
	return 0, false
}

// isUpgrade reports whether the request switches to another protocol after its header.
func isUpgrade(in *http.Request) bool {
	if in.Method == http.MethodConnect {
		return true
	}
	if len(in.Header["Upgrade"]) == 0 {
		return false
	}
	for _, line := range in.Header["Connection"] {
		for token := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.Trim(token, " \t"), "upgrade") {
				return true
			}
		}
	}
	return false
}

// isEncoded reports whether the body is compressed, or claims to be.
func isEncoded(h http.Header) bool {
	for _, line := range h["Content-Encoding"] {
		if line != "" && !strings.EqualFold(line, "identity") {
			return true
		}
	}
	return false
}

// readBody reads the body if its parameters are of this source. It keeps the ones that
// rules of the route name.
func (r *request) readBody(source rules.Source) {
	if r.lookAtBody() != bodyDeclared || r.body.source != source || r.verdict.denied {
		return
	}
	limits := &r.route.set.bodyLimits
	in, ctx := r.in.http(), r.in.Context
	if ctx == nil {
		ctx = in.Context()
	}
	text, reason := r.guard.bodies.readAndHold(ctx, in, limits.Max, limits.Total)
	switch {
	case reason != isRead:
	case len(text) > 0 && !r.addBody(text):
		reason = malformed
	default:
		r.body.state = bodyRead
		r.guard.bodies.read.Add(1)
		return
	}
	r.endUnread(reason)
}

// addBody adds the parameters of the body and reports whether the body is well-formed. It adds
// none if it is not.
func (r *request) addBody(text []byte) bool {
	if r.body.source == rules.JSON {
		return r.addJSON(text)
	}
	return r.addForm(text)
}

func (r *request) endUnread(reason unreadReason) {
	r.body.state = bodyUnread
	r.guard.bodies.unread[reason].Add(1)
}

// mayRead reports whether the body may be read for a rule that depends on it. Requests that
// other limits deny are not read, since a client that waits for 100 Continue sends the body
// only when it is read. Rules by the body come last, so the limits of this process have
// decided by then; mayRead asks the backend now.
func (r *request) mayRead(c *candidate) bool {
	if r.route.set.Evaluate == rules.EvaluateFirst || c.Ignore || r.lookAtBody() != bodyDeclared || !c.body.has(r.body.source) {
		return true
	}
	if !r.verdict.denied {
		r.askBackend()
	}
	return !r.verdict.denied
}

// isUnread reports whether the rule depends on the body and the body could not be read.
func (r *request) isUnread(c *candidate) bool {
	if c.body == 0 {
		return false
	}
	r.loadParams(c)
	return r.body.state == bodyUnread && c.body.has(r.body.source)
}

// useUnread applies a rule to a request whose body could not be read. The keys that the rule
// would make are replaced by one key for all such requests.
func (r *request) useUnread(c *candidate) {
	switch {
	case c.Unread == rules.UnreadReject && !r.asks:
		r.postponeRefusal()
	case c.Unread == rules.UnreadReject:
		r.addDenial(&claim{rule: c, spec: c.spec}, &rules.Decision{Reason: rules.ReasonUnread, Rule: c.ID})
	case c.By.Kind == rules.ByNone && c.matcher == nil:
		r.limitRule(c)
	default:
		if c.overlaps {
			r.countTotal(c)
		}
		r.startKey(c)
		r.key = base.AppendUnread(r.key, r.body.source.String())
		r.useKey(c)
	}
}
