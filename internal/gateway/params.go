package gateway

import (
	"context"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/middleware"
)

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
