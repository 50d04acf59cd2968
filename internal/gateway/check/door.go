package check

import (
	"cmp"
	"context"
	"crypto/tls"
	_ "embed"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/countset"
	"github.com/hotparam/hotparam/internal/gateway"
	"github.com/hotparam/hotparam/internal/httpserve"
)

// Defaults of a [Config].
const (
	DefaultTimeout        = time.Second
	DefaultMaxBody        = 256 << 10
	DefaultMaxConnections = 512
)

// Config configures a [Door]. Decider and Tickets are required.
type Config struct {
	Decider *gateway.Decider
	Tickets *gateway.Tickets
	// TLS makes the door serve TLS. Its ClientAuth sets whether peers need a certificate. Nil
	// means plain HTTP.
	TLS *tls.Config
	// Token must be sent as "Authorization: Bearer TOKEN". Empty means that no token is
	// needed.
	Token string
	// Allow are the networks from which peers may connect. Empty means all. Peers of Unix
	// sockets are always allowed.
	Allow gateway.Peers
	// Timeout is the deadline of a decision that queries Redis. Zero means [DefaultTimeout].
	Timeout time.Duration
	// MaxBody is the maximum size of a request's body, in bytes. Zero means [DefaultMaxBody].
	MaxBody int64
	// MaxConnections is the maximum number of open connections. At the maximum, a new
	// connection evicts the one that has been idle longest. Zero means
	// [DefaultMaxConnections].
	MaxConnections int
	Log            *slog.Logger // nil disables logging
}

// Counters count the checks and connections of a door. N is int64 in [Stats] and [atomic.Int64]
// in a running door.
type Counters[N any] struct {
	gateway.ConnCounters[N]
	Passed, Refused N // checks; each check of a batch counts
	Bad             N // requests that are not valid requests of the API
	TooLarge        N // requests whose body exceeds Config.MaxBody
	Unauthorized    N // requests without the token
}

// Stats are the counters of a door since it was created.
type Stats struct {
	Counters[int64]
	HTTP httpserve.Stats
}

// Door serves the check API to programs. It is safe for concurrent use.
type Door struct {
	config    Config
	token     gateway.Token
	admission gateway.Admission // without Max: server enforces MaxConnections
	server    *httpserve.Server
	counters  Counters[atomic.Int64]
}

// New returns a door. It starts nothing.
func New(c Config) (*Door, error) {
	if c.Decider == nil || c.Tickets == nil {
		return nil, errors.New("check: New needs a Decider and Tickets")
	}
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.MaxBody = cmp.Or(c.MaxBody, DefaultMaxBody)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.MaxConnections = cmp.Or(c.MaxConnections, DefaultMaxConnections)
	d := &Door{config: c, token: gateway.NewToken(c.Token)}
	d.admission = gateway.Admission{Peers: c.Allow, Counters: &d.counters.ConnCounters, Log: c.Log}
	d.server = httpserve.New(httpserve.Config{Handler: d.handler(), MaxConnections: c.MaxConnections, Log: c.Log})
	return d, nil
}

// Serve serves the listener until ctx is done, and closes it. In-flight requests then have a
// second to end.
func (d *Door) Serve(ctx context.Context, l net.Listener) error {
	return d.server.Serve(ctx, d.admission.SecureListener(d.admission.Listener(l), d.config.TLS))
}

// Stats returns the counters.
func (d *Door) Stats() Stats {
	return Stats{Counters: countset.Load[Counters[int64]](&d.counters), HTTP: d.server.Stats()}
}

// handler returns the handler of the API.
func (d *Door) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/check", d.serveCheck)
	mux.HandleFunc("POST /v1/check/batch", d.serveBatch)
	mux.HandleFunc("POST /v1/done", d.serveDone)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, pattern := mux.Handler(r)
		switch {
		case r.URL.Path == "/v1/openapi.json" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(openAPI)
		case !d.isAuthorized(r):
			d.counters.Unauthorized.Add(1)
			w.Header().Set("WWW-Authenticate", `Bearer realm="hotparam"`)
			writeProblem(w, http.StatusUnauthorized, "the token is missing or wrong: send it as Authorization: Bearer TOKEN")
		case pattern != "":
			mux.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, "/v1/") && r.Method != http.MethodPost:
			d.counters.Bad.Add(1)
			w.Header().Set("Allow", http.MethodPost)
			writeProblem(w, http.StatusMethodNotAllowed, "want POST")
		default:
			d.counters.Bad.Add(1)
			writeProblem(w, http.StatusNotFound, "want POST /v1/check, /v1/check/batch or /v1/done; GET /v1/openapi.json describes them")
		}
	})
}

//go:embed openapi.json
var openAPI []byte

// isAuthorized reports whether a request has the token.
func (d *Door) isAuthorized(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		token = ""
	}
	return d.token.Accepts(strings.TrimSpace(token))
}
