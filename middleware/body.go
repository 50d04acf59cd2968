package middleware

import (
	"net/http"

	"github.com/hotparam/hotparam/middleware/internal/bodies"
	"github.com/hotparam/hotparam/rules"
)

// lookAtBody determines the state of the body from the request's header, without reading it.
func (r *reading) lookAtBody() bodyState {
	b := &r.body
	if b.state != bodyUnknown {
		return b.state
	}
	b.state = bodyAbsent
	in := r.in.http()
	if in == nil || in.Body == nil || in.Body == http.NoBody {
		return b.state
	}
	source, ok := bodies.SourceOf(in)
	if !ok || !r.route.bodies.has(source) {
		return b.state
	}
	b.state, b.source = bodyDeclared, source
	if reason := bodies.Look(in, r.route.set.bodyLimits.Max); reason != bodies.OK {
		r.endUnread(reason)
	}
	return b.state
}

// readBody returns the body if its parameters are of this source and it has any. Its caller ends it
// by endBody.
func (r *reading) readBody(source rules.Source) (text []byte, ok bool) {
	if r.lookAtBody() != bodyDeclared || r.body.source != source || r.denied {
		return nil, false
	}
	limits := &r.route.set.bodyLimits
	in, ctx := r.in.http(), r.in.Context
	if ctx == nil {
		ctx = in.Context()
	}
	text, reason := r.bodies.Hold(ctx, in, limits.Max, limits.Total)
	switch {
	case reason != bodies.OK:
		r.endUnread(reason)
	case len(text) == 0:
		r.endBody(true)
	}
	return text, reason == bodies.OK && len(text) > 0
}

// endBody records a body that was read, and whether it is well-formed.
func (r *reading) endBody(wellFormed bool) {
	if !wellFormed {
		r.endUnread(bodies.Malformed)
		return
	}
	r.body.state = bodyRead
	r.bodies.Read.Add(1)
}

func (r *reading) endUnread(reason bodies.Reason) {
	r.body.state = bodyUnread
	r.bodies.Unread[reason].Add(1)
}
