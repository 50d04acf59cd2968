package middleware

import (
	"fmt"
	"net/http"

	"github.com/hotparam/hotparam/rules"
)

// Limit returns a middleware that holds requests to a quota in this process. It finds no hot
// keys and counts no requests, so it needs no collector, no goroutine and no connection:
//
//	r.Use(middleware.Limit(limiter.Per(100, time.Minute), "addr:ip"))
//
// The parameter identifies clients. It is named as in rules: addr:ip, header:x-api-key,
// form:user, ctx:tenant with [WithParam], or q for the query's. Each value has the whole quota,
// over all routes behind the middleware. Requests without the parameter share one quota. With
// an empty name, all requests share one.
//
// Options have the same meaning as for [New]. Behind proxies, addr:ip needs [WithClient].
// Handlers that the returned function makes share the limit. For several limits, waiting or
// exceptions, use New with rules without hot and a nil collector.
//
// Limit panics if the quota, the parameter or an option is invalid.
func Limit(quota rules.Quota, param string, opts ...Option) func(http.Handler) http.Handler {
	g, err := newLimiting(quota, param, opts)
	if err != nil {
		panic(fmt.Sprintf("middleware: Limit: %v", err))
	}
	return g.Handler
}

func newLimiting(quota rules.Quota, param string, opts []Option) (*Guard, error) {
	any, err := rules.ParseRoute("*")
	if err != nil {
		return nil, err
	}
	rule := rules.Rule{
		ID: "limit", Match: rules.Match{Route: any}, ParamsOnly: true,
		Limit: &rules.Limit{Quota: quota.WithDefaults(), Mode: rules.ModeLimit},
	}
	if param != "" {
		p, message, hint := rules.ParseName(param)
		if message != "" {
			return nil, fmt.Errorf("parameter %q: %s (%s)", param, message, hint)
		}
		rule.By = rules.By{Kind: rules.ByNames, Names: []rules.Param{p}}
	}
	opts = append([]Option{func(o *options) { o.limitsBare = true }}, opts...)
	return New(&rules.Rules{Namespace: "limit", Rules: []rules.Rule{rule}}, nil, opts...)
}
