package auth

import (
	"context"
	"net/http"
	"strings"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// ServeHTTP answers one subrequest of a gateway.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	asked, below, ok := d.endpoint(r)
	scheme := asked.scheme
	switch {
	case !ok:
		d.Fault(gateway.UnknownPath, "a gateway uses a path that is not an endpoint of guard.auth", "path", firstSegment(r.URL.Path))
		http.Error(w, "hotparam has no endpoint at this path", http.StatusNotFound)
		return
	case !d.Accepts(r.Header.Get(tokenHeader)):
		d.Fault(gateway.Unauthorized, "a gateway did not send the right token: configure it to send the header "+tokenHeader, "peer", r.RemoteAddr)
		http.Error(w, "hotparam needs its token in "+tokenHeader, http.StatusUnauthorized)
		return
	}
	call, missing, ambiguous := scheme.read(r, below)
	call.Steps = asked.steps
	if ambiguous != "" {
		d.Fault(gateway.Ambiguous, "a gateway sends a header of its scheme more than once, and the request is refused: configure it to replace the client's header", "header", ambiguous, "scheme", scheme)
		refuse(w, scheme, repeated(ambiguous))
		return
	}
	if missing != "" {
		d.Fault(gateway.Incomplete, "a gateway does not send a required header: without the URI, requests pass undecided", "header", missing, "scheme", scheme)
		if call.Target == "" {
			w.Header()[decisionHeader] = []string{rules.ReasonOpen.String()}
			w.WriteHeader(scheme.success())
			return
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), d.Timeout)
	defer cancel()
	decision, ticket := d.Decider.Begin(ctx, call)
	ticket.End(middleware.Cost{}) // the protocol does not report the end of a request
	d.answer(w, scheme, decision)
}

// endpoint returns what the path of a subrequest asks and, for Envoy, the target of the request that
// it describes. It uses the raw target, so that no client's path below one endpoint can reach
// another. The described target may follow a "?": net/http answers 400 to a path with an invalid
// escape, which an application may accept, but does not parse the query.
func (d *Door) endpoint(r *http.Request) (q query, below string, ok bool) {
	target := r.RequestURI
	if !strings.HasPrefix(target, "/") {
		target = r.URL.RequestURI() // of an absolute URI
	}
	path, _, _ := strings.Cut(target, "?")
	if q, ok = d.exact[path]; ok {
		return q, "", true
	}
	for _, e := range d.prefixes {
		if below, ok = strings.CutPrefix(target, e.Path); ok && (below == "" || strings.IndexByte("/?*", below[0]) >= 0) {
			return query{scheme: Envoy}, strings.TrimPrefix(below, "?"), true
		}
	}
	return query{}, "", false
}

// firstSegment returns the part of a path that may be logged. The rest may come from a client.
func firstSegment(path string) string {
	const limit = 64
	if len(path) > limit {
		path = path[:limit]
	}
	if slash := strings.IndexByte(strings.TrimPrefix(path, "/"), '/'); slash >= 0 {
		return path[:slash+1] + "/…"
	}
	return path
}
