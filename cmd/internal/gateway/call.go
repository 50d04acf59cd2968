package gateway

import (
	"context"
	"net/http"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// Call describes one request, as a gateway reports it, or an access to a resource.
type Call struct {
	// Resource is the resource, or empty for a request. Only the fields Params, NoWait, Context and
	// Peek describe an access to one.
	Resource string
	Params   []rules.Param // not nil for a resource
	// Peek makes [Decider.Together] only check whether the call would pass. It is counted.
	Peek bool

	Method string
	// Target is the path and the query as the gateway passes them, or an absolute URI.
	Target string
	// Header has canonical names, and may be nil. Its Host is the request's host.
	Header http.Header
	// Addr is the client's address, "ip" or "ip:port", as the gateway reports it. It is empty
	// if the address is not known.
	Addr string
	// Caller identifies the sender, such as a tenant. It is ignored unless
	// Config.TrustCaller or FromProgram is set. If it is empty, the address is the caller.
	Caller string
	// FromProgram reports whether the peer is the application itself, whose Caller is trusted.
	FromProgram bool
	// NoWait makes the decision return at once if a rule makes requests wait. The application
	// then waits for the decision's Delay.
	NoWait bool
	// Steps selects the steps of the check, for a gateway that has a cache.
	Steps middleware.Steps
	// Context holds the values of the request's ctx:name parameters, by name. It may be nil.
	Context map[string]string
}

// paramsKey is the key of a call's parameters in its context.
type paramsKey struct{}

func withParams(ctx context.Context, params map[string]string) context.Context {
	if len(params) == 0 {
		return ctx
	}
	return context.WithValue(ctx, paramsKey{}, params)
}

// WithContext returns an option that resolves ctx:name parameters from [Call].Context, including
// names that a reload adds to the file. A call without the parameter has no key for it.
func WithContext() hotparam.Option {
	return hotparam.WithMiddleware(middleware.WithParams(func(ctx context.Context, name string) string {
		params, _ := ctx.Value(paramsKey{}).(map[string]string)
		return params[name]
	}))
}
