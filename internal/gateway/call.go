package gateway

import "net/http"

// Call is one request as a gateway tells it.
type Call struct {
	Method string
	// Target is the path and the query as the gateway passes them, or an absolute URI.
	Target string
	// Header has canonical names, and may be nil. Its Host is the request's host.
	Header http.Header
	// Addr is the client's address, "ip" or "ip:port", as the gateway says. It is empty if
	// it is not known.
	Addr string
	// Caller is the sender, such as a tenant. It is ignored unless the decider trusts callers
	// or FromProgram is set. If it is empty, the address is the caller.
	Caller string
	// FromProgram is set by a door whose peer is the application itself, which knows its
	// callers.
	FromProgram bool
	// NoWait has the call not wait where a rule has requests wait: the Delay of the decision
	// is how long the application should wait.
	NoWait bool
	// Context holds the parameters ctx:name that the application knows of the request, by
	// name. It may be nil.
	Context map[string]string
}
