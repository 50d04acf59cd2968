package hotparam

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/middleware"
)

// options holds what the [Option] functions set.
type options struct {
	log        *slog.Logger
	redis      redis.UniversalClient // nil for a client by the file's aggregator.redis
	name       string
	signals    bool
	onReload   func(*config.File) // may be nil
	middleware []middleware.Option
}

// Option configures [Open].
type Option func(*options)

// WithLogger sets the log. It receives a line per event, such as the beginning and the end
// of an outage, and never one per request. The default is [slog.Default].
func WithLogger(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// WithRedis uses the program's client instead of making one by the file's aggregator.redis.
// Its options must have ContextTimeoutEnabled and should have MaxRetries: -1, as those of
// hotkeys.NewClient do. Close leaves it open.
func WithRedis(client redis.UniversalClient) Option { return func(o *options) { o.redis = client } }

// WithName sets the name of this instance, 1 to 64 of A-Z a-z 0-9 _ . -, which should
// differ from the names of the others. The default is the host's name and the process id.
func WithName(name string) Option { return func(o *options) { o.name = name } }

// WithSignals reads the file again on SIGHUP, as well as whenever it changes. Without it,
// signals are left to the program.
func WithSignals() Option { return func(o *options) { o.signals = true } }

// WithOnReload sets f, which is called with each changed file whose rules are in force, whether or not
// the rules have changed. It must neither block nor call the Hotparam.
func WithOnReload(f func(*config.File)) Option { return func(o *options) { o.onReload = f } }

// WithShadow lets every request pass without waiting, whatever the rules say. Requests that
// would have been refused are counted.
func WithShadow() Option { return WithMiddleware(middleware.WithShadow()) }

// WithCaller takes a request's caller from f; see [middleware.WithCaller].
func WithCaller(f func(*http.Request) string) Option {
	return WithMiddleware(middleware.WithCaller(f))
}

// WithRoute takes a request's route from f; see [middleware.WithRoute]. It is not needed
// if the guarded handler is an *[http.ServeMux].
func WithRoute(f func(*http.Request) string) Option {
	return WithMiddleware(middleware.WithRoute(f))
}

// WithParam takes the parameter ctx:name from f; see [middleware.WithParam].
func WithParam(name string, f func(context.Context) string) Option {
	return WithMiddleware(middleware.WithParam(name, f))
}

// WithMiddleware passes options on to the guard. Later options take precedence over earlier
// ones and over the file.
func WithMiddleware(opts ...middleware.Option) Option {
	return func(o *options) { o.middleware = append(o.middleware, opts...) }
}

// newOptions applies opts to the defaults.
func newOptions(opts []Option) (*options, error) {
	o := &options{name: collector.DefaultInstance()}
	for _, set := range opts {
		set(o)
	}
	if o.log == nil {
		o.log = slog.Default()
	}
	if !wire.ValidInstance(o.name) {
		return nil, fmt.Errorf("WithName(%q): want 1 to %d of A-Z a-z 0-9 _ . -", o.name, wire.MaxInstance)
	}
	return o, nil
}
