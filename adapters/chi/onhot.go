package hpchi

import (
	"context"
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"

	"github.com/hotparam/hotparam/middleware"
)

// lead returns the handler for a run that answers several requests, in which chi has found as much
// of the route as for the request. It returns nil if the guard does not know the whole route, since
// then requests with other routes may have the same answers in its view.
func (f *finder) lead(next http.Handler) http.Handler {
	if f.route.Template == "" || !hasParamsOf(f.rctx) {
		return nil
	}
	method := f.rctx.RouteMethod
	switch method {
	case http.MethodHead:
		method = http.MethodGet // as the run's request
	case "", http.MethodGet:
	default:
		return nil
	}
	if f.beforeMount() {
		if router, ok := f.rctx.Routes.(http.Handler); ok {
			return middleware.Restart(router)
		}
		return nil
	}
	c := chi.NewRouteContext()
	c.Routes, c.RoutePath, c.RouteMethod, c.RoutePatterns = f.rctx.Routes, f.rctx.RoutePath, method, slices.Clone(f.rctx.RoutePatterns)
	c.URLParams = chi.RouteParams{Keys: slices.Clone(f.rctx.URLParams.Keys), Values: slices.Clone(f.rctx.URLParams.Values)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(context.WithValue(r.Context(), chi.RouteCtxKey, c))
		for i, key := range c.URLParams.Keys {
			r.SetPathValue(key, c.URLParams.Values[i])
		}
		next.ServeHTTP(w, r)
	})
}

// beforeMount reports whether chi has found a mounted router and not yet entered it. The path there
// is in a part of the context that cannot be copied.
func (f *finder) beforeMount() bool {
	params := &f.rctx.URLParams
	last := len(params.Keys) - 1
	return last >= 0 && params.Keys[last] == "*" && params.Values[last] != "" && f.route.Template != join(f.rctx.RoutePatterns)
}

// hasParamsOf reports whether the parameters of the context are those of its patterns. Middleware
// may have added others, from anything.
func hasParamsOf(c *chi.Context) bool {
	var names []string
	for _, pattern := range c.RoutePatterns {
		for _, p := range parse(pattern) {
			if p.Name != "" {
				names = append(names, p.Name)
			}
		}
	}
	return slices.Equal(names, c.URLParams.Keys)
}
