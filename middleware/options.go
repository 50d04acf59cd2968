package middleware

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/rules"
)

// options holds what the [Option] functions set.
type options struct {
	route  func(*http.Request) string
	skip   func(*http.Request) bool
	caller func(*http.Request) string
	// ownCaller is set if the application supplies the callers.
	ownCaller bool
	limited   handlerFunc            // nil if the program has none
	serve     map[string]handlerFunc // by the rule's id
	headers   headers
	hooks     Hooks
	hooked    bool
	shadow    bool
	noLocal   bool
	noWait    bool
	// limitsBare makes requests with none of a rule's parameters share a key.
	limitsBare bool
	client     *rules.Client // nil if the rules' Client is used
	clock      func() time.Duration
	maxKeys    int
	onSwap     func(version string, hot []HotKey)
	log        *slog.Logger

	algorithms map[rules.Algorithm]limiter.Algorithm
	matchers   map[string]matcher // by the rule's id
	params     map[string]func(context.Context) string
	anyParam   func(ctx context.Context, name string) string // for names that are not in params
	backend    limiter.Backend
	semaphore  semaphore.Acquirer
	sharer     Sharer // nil if there is none
}

// Option configures a [Guard].
type Option func(*options)

// Unrouted is the pattern of requests that a router has no route for. Whatever their paths
// and methods, their keys have this one route, so that a scan of a server does not make an
// unbounded number of keys. Rules still match them by their paths.
const Unrouted = "UNROUTED /"

// WithMux takes a request's route from the mux that will serve it. It is not needed if the
// guard wraps the mux itself, or a handler inside a mux, where the request has its pattern.
func WithMux(mux *http.ServeMux) Option {
	return WithRoute(func(r *http.Request) string {
		if r.Method == http.MethodConnect {
			return Unrouted // since a mux may answer with the client's own path
		}
		if _, pattern := mux.Handler(r); pattern != "" {
			return pattern
		}
		return Unrouted
	})
}

// WithRoute takes a request's route from f, which returns a pattern in the syntax of
// [http.ServeMux], or "" if the route is unknown.
func WithRoute(f func(*http.Request) string) Option { return func(o *options) { o.route = f } }

// WithCaller takes a request's caller from f, such as the tenant or the API key's owner. f
// returns "" if the caller is unknown. The default is the host of the request's RemoteAddr,
// which behind a proxy is the proxy. f is called for the sampled requests of hot keys, and for
// all requests if there are [Hooks]. A [Request].Caller takes precedence. The callers of hot
// keys leave the process; see [published.Attribution].
func WithCaller(f func(*http.Request) string) Option {
	return func(o *options) { o.caller, o.ownCaller = f, true }
}

// WithSkip lets requests pass uncounted if f returns true for them.
func WithSkip(f func(*http.Request) bool) Option { return func(o *options) { o.skip = f } }

// WithLimited makes f answer the refused requests. The default is the answer of
// [rules.Decision.Answer], which f can get from its decision. Outside of [Guard.Handler], the
// response of f is recorded; see [WithServe].
func WithLimited(f func(http.ResponseWriter, *http.Request, rules.Decision)) Option {
	return func(o *options) { o.limited = f }
}

// WithServe makes h answer the requests that a rule with on_limit: serve refuses, instead of
// the rule's own answer. Requests to h are not limited.
//
// [Guard.Handler] calls h with the server's writer. For other requests,
// [rules.Decision.Answer] calls h and records its response of at most 1 MiB, so h cannot
// stream or hijack. A longer response is dropped, and the request gets the answer that it
// would have without h. h gets the request of [Request].HTTP or MakeHTTP, or one made from the
// other fields.
func WithServe(ruleID string, h http.Handler) Option {
	return func(o *options) {
		o.serve[ruleID] = func(w http.ResponseWriter, r *http.Request, _ rules.Decision) { h.ServeHTTP(w, r) }
	}
}

// WithHooks sets functions that are called for each request.
func WithHooks(h Hooks) Option { return func(o *options) { o.hooks, o.hooked = h, true } }

// WithShadow lets every request pass without waiting, whatever the rules say. Requests that
// would have been refused are counted.
func WithShadow() Option { return func(o *options) { o.shadow = true } }

// WithoutLocal limits only the keys that are written to [Guard.HotSet]. By default, a key
// that reaches its rule's whole threshold on this instance alone is limited here at once.
// Its mark is removed if the aggregator does not confirm it within two seconds or, while no
// aggregator is available, when the key cools here.
func WithoutLocal() Option { return func(o *options) { o.noLocal = true } }

// WithoutWaiting makes requests never wait. The Delay of a decision is then the time that the
// caller should wait before it proceeds.
func WithoutWaiting() Option { return func(o *options) { o.noWait = true } }

// WithClock sets the clock of the limits: the monotonic time since any fixed instant, or
// since the Unix epoch if limits follow the calendar. Waits use the system's clock.
func WithClock(now func() time.Duration) Option { return func(o *options) { o.clock = now } }

// WithMaxKeys sets the number of keys of each limit that have their own place in this process.
// It holds for rules without hot, and for limits with scope: exact while their backend is
// unavailable. The default is [rules.Rules.LimitKeys]. The debts of further keys are estimates
// that are never too low; see [limiter.Memory].
func WithMaxKeys(n int) Option { return func(o *options) { o.maxKeys = n } }

// WithOnSwap sets f, which is called whenever the set of hot keys of this process has
// changed. f must be quick.
func WithOnSwap(f func(version string, hot []HotKey)) Option {
	return func(o *options) { o.onSwap = f }
}

// WithLog sets the log for events that concern an operator, such as an instance's part of a
// limit that is less than one permit. It receives no line per request. With a nil log, nothing
// is logged.
func WithLog(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// WithAlgorithm registers an algorithm that limits select by its name, which must begin
// with "x_".
func WithAlgorithm(name rules.Algorithm, a limiter.Algorithm) Option {
	return func(o *options) { o.algorithms[name] = a }
}

// WithClient replaces the rules' Client, which determines a client's address. Behind proxies,
// c has their networks and the header that they write.
func WithClient(c rules.Client) Option { return func(o *options) { o.client = &c } }

// withClient returns rules with the client of [WithClient], if there is one.
func (o *options) withClient(rules *rules.Rules) *rules.Rules {
	if o.client == nil {
		return rules
	}
	changed := *rules
	changed.Client = *o.client
	return &changed
}

// WithBackend sets the backend of limits with scope: fleet or exact, such as a store on Redis. Unless
// it is a [limiter.Failover], the guard wraps it in one with default settings, so that each
// limit's when_redis_is_away decides while the backend is unavailable. Inside that it uses a
// [limiter.Cached]: a denial until some time is repeated until then without a call, for at
// most a second. See [Guard.Run].
func WithBackend(b limiter.Backend) Option { return func(o *options) { o.backend = b } }

// WithSemaphore sets the semaphore for the concurrency of limits with scope: fleet or exact.
func WithSemaphore(s semaphore.Acquirer) Option { return func(o *options) { o.semaphore = s } }

// handlerFunc is a function of the program that answers a refused request.
type handlerFunc func(http.ResponseWriter, *http.Request, rules.Decision)

// WithHeaders makes responses state the limit that decided: the tightest limit that allowed
// the request, or the one that refused it. The limit's name is the rule's id.
// Without styles, it uses RateLimitHeaders.
//
//	RateLimit-Policy: "search";q=100;w=60
//	RateLimit: "search";r=50;t=30
func WithHeaders(styles ...HeaderStyle) Option {
	return func(o *options) {
		o.headers.draft = o.headers.draft || len(styles) == 0
		for _, style := range styles {
			switch style {
			case RateLimitHeaders:
				o.headers.draft = true
			case LegacyHeaders:
				o.headers.legacy = true
			}
		}
	}
}

// WithMatcher sets f, which decides on the requests that the rule ruleID would match. The
// key that f returns replaces the keys of the rule: it is the value of one parameter, "key".
// An empty key means that the rule does not match. The rule matches no requests that are not
// HTTP. If f panics, the request passes.
//
// The matchers of a request are called in the order of the rules, before anything is
// counted. The first that returns a key or ignore decides. Ignore exempts the request from
// all rules; after another matcher has returned a key, it only means that this rule does
// not match. With evaluate: first, a matching rule without a matcher decides too, and the
// matchers of later rules are not called.
func WithMatcher(ruleID string, f func(r *http.Request) (key string, ignore bool)) Option {
	return func(o *options) { o.matchers[ruleID] = f }
}

// WithParam makes rules take the parameter ctx:name, such as a user, a tenant or a verified
// claim, from f. f is called with the request's context, at most once for a request, and only
// if a rule that the request may match names the parameter. An empty value makes no key and
// is counted in [Stats].Absent: if the guard runs before authentication, requests without a
// user are not limited by such rules. If f panics, the request passes.
func WithParam(name string, f func(context.Context) string) Option {
	return func(o *options) {
		if o.params == nil {
			o.params = make(map[string]func(context.Context) string)
		}
		o.params[name] = f
	}
}

// WithParams makes rules take each parameter ctx:name without a [WithParam] from f, which is
// called like the function of WithParam. It is for programs that do not know the names in
// advance, since rules that are loaded later name others.
func WithParams(f func(ctx context.Context, name string) string) Option {
	return func(o *options) { o.anyParam = f }
}

// WithSharer sets what answers requests of hot keys of rules with on_hot. Without it on_hot is
// ignored. hotparam.Open sets one. Only [Guard.Handler] answers so; other callers check in two
// steps, see [Steps].
func WithSharer(s Sharer) Option { return func(o *options) { o.sharer = s } }

// Hooks are functions that are called for each request, in the request's goroutine. A nil
// hook is not called. Hooks must be quick. A panic in a hook is counted in [Stats].Panics, and
// has no other effect. For a request of a hot key whose rule has on_hot, After is called with
// [rules.ReasonShared], and again with the limits' decision if the handler has to answer it.
type Hooks struct {
	Before func(Request)                 // called before anything is counted
	After  func(Request, rules.Decision) // called after the decision, and the wait if there is one
	Denied func(Request, rules.Decision) // called after After, for a refused request
	Near   func(Request, rules.Decision) // called after After, for a request that leaves less than a tenth of its limit
}

// callerOf returns the request's caller.
func (o *options) callerOf(in *Request) string {
	if in.Caller == "" {
		if r := in.http(); r != nil {
			in.Caller = o.caller(r)
		}
	}
	return in.Caller
}

// skips reports whether [WithSkip] lets the request pass.
func (o *options) skips(in *Request) bool {
	r := in.http()
	return r != nil && o.skip(r)
}
