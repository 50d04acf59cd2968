package middleware

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/semaphore"
)

// options are what an [Option] sets.
type options struct {
	route   func(*http.Request) string
	skip    func(*http.Request) bool
	caller  func(*http.Request) string
	limited func(http.ResponseWriter, *http.Request, hotparam.Decision)
	serve   map[string]http.Handler // by the rule's id
	headers headers
	hooks   Hooks
	shadow  bool
	noLocal bool
	noWait  bool
	clock   func() time.Duration
	maxKeys int
	onSwap  func(version string, hot []hotparam.Hot)
	log     *slog.Logger

	algorithms map[hotparam.Algorithm]limiter.Algorithm
	matchers   map[string]matcher // by the rule's id
	backend    limiter.Backend
	semaphore  semaphore.Acquirer
}

// Option changes how a [Guard] works.
type Option func(*options)

// WithMux takes a request's route from the mux that will serve it. It is not
// needed where the mux itself is wrapped, nor around a single handler inside a
// mux, where the request knows its pattern.
func WithMux(mux *http.ServeMux) Option {
	return WithRoute(func(r *http.Request) string {
		if r.Method == http.MethodConnect {
			return "" // a mux may answer with the client's own path
		}
		_, pattern := mux.Handler(r)
		return pattern
	})
}

// WithRoute takes a request's route from f: a pattern in the manner of
// http.ServeMux, or "" for one that is not known.
func WithRoute(f func(*http.Request) string) Option { return func(o *options) { o.route = f } }

// WithCaller takes from f who sends a request, such as the tenant or the API key's
// owner; "" means not known. The default is the host of its RemoteAddr, which behind a
// proxy is the proxy. The callers of hot keys leave the process; see
// [hotparam.Attribution].
func WithCaller(f func(*http.Request) string) Option { return func(o *options) { o.caller = f } }

// WithSkip lets requests for which f returns true pass, uncounted.
func WithSkip(f func(*http.Request) bool) Option { return func(o *options) { o.skip = f } }

// WithLimited answers a request that was refused. The default is [Refuse].
func WithLimited(f func(http.ResponseWriter, *http.Request, hotparam.Decision)) Option {
	return func(o *options) { o.limited = f }
}

// WithServe answers with h the requests that a rule with on_limit: serve refuses,
// in place of the answer that the rule has. It is not itself limited.
func WithServe(ruleID string, h http.Handler) Option {
	return func(o *options) { o.serve[ruleID] = h }
}

// WithHooks calls hooks for each request.
func WithHooks(h Hooks) Option { return func(o *options) { o.hooks = h } }

// WithShadow refuses no request and lets none wait: what would have been refused is
// counted and passes, whatever the rules say.
func WithShadow() Option { return func(o *options) { o.shadow = true } }

// WithoutLocal limits only the keys that are written to [Guard.HotSet]. By default a key
// that reaches its rule's whole threshold on this instance alone is limited here at once,
// before the aggregator has published it, and until the aggregator has had two seconds to
// agree; while no aggregator answers, until the key cools here.
func WithoutLocal() Option { return func(o *options) { o.noLocal = true } }

// WithoutWaiting lets no request wait: the Delay of a decision is how long the request
// should, and waiting is left to the caller.
func WithoutWaiting() Option { return func(o *options) { o.noWait = true } }

// WithClock sets the clock of the limits: monotonic, since any fixed instant, or since the
// Unix epoch if limits follow the calendar. Waits use the system's clock.
func WithClock(now func() time.Duration) Option { return func(o *options) { o.clock = now } }

// DefaultMaxKeys is how many keys a rule without hot holds at a time.
const DefaultMaxKeys = 1 << 16

// WithMaxKeys bounds how many keys each rule without hot holds at a time, and for how
// many keys of a rule with concurrency the requests being served are counted.
func WithMaxKeys(n int) Option { return func(o *options) { o.maxKeys = n } }

// WithOnSwap calls f whenever another set of hot keys has come into force in this
// process. f must be quick, and must not keep or change the slice.
func WithOnSwap(f func(version string, hot []hotparam.Hot)) Option {
	return func(o *options) { o.onSwap = f }
}

// WithLog logs what an operator should know, never once per request: that an instance's
// part of a limit is less than one permit. If log is nil, nothing is logged.
func WithLog(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// WithAlgorithm registers the algorithm that limits select by this name, which begins
// with "x_".
func WithAlgorithm(name hotparam.Algorithm, a limiter.Algorithm) Option {
	return func(o *options) { o.algorithms[name] = a }
}

// WithBackend sets the backend of limits with scope: exact, such as a store on Redis.
// While it is away each limit's when_redis_is_away decides: the guard puts a
// [limiter.Failover] around it, with its defaults, unless it is one, and within that a
// [limiter.Cached]: what the backend has denied until some time is denied here until
// then, for at most a second, without a call. See [Guard.Run].
func WithBackend(b limiter.Backend) Option { return func(o *options) { o.backend = b } }

// WithSemaphore sets the semaphore for the concurrency of limits with scope: exact.
func WithSemaphore(s semaphore.Acquirer) Option { return func(o *options) { o.semaphore = s } }
