package gateway

import (
	"context"

	"github.com/hotparam/hotparam/attach"
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

// WithContext has rules find every parameter ctx:name in [Call].Context, also those that the
// file names only after a reload. A call without the parameter makes no key of it.
func WithContext() attach.Option {
	return attach.WithMiddleware(middleware.WithParams(func(ctx context.Context, name string) string {
		params, _ := ctx.Value(paramsKey{}).(map[string]string)
		return params[name]
	}))
}
