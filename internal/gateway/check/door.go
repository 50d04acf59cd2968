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

// Config is what a [Door] is made of. Decider and Tickets are required.
type Config struct {
	Decider *gateway.Decider
	Tickets *gateway.Tickets
	// TLS is used if it is not nil. Its ClientAuth says whose certificates may ask.
	TLS *tls.Config
	// Token, unless it is empty, has to be sent as "Authorization: Bearer TOKEN".
	Token string
	// Allow are the networks that may connect; none means all. Unix sockets are always
	// accepted.
	Allow gateway.Peers
	// Timeout bounds a decision that asks Redis. Zero means [DefaultTimeout].
	Timeout time.Duration
	// MaxBody bounds the body of a request, in bytes. Zero means [DefaultMaxBody].
	MaxBody int64
	// MaxConnections bounds the connections, of which the idlest gives way to a new one. Zero
	// means [DefaultMaxConnections].
	MaxConnections int
	Log            *slog.Logger // nil: nothing is logged
}

// Counters count what a door has done. N is int64 in [Stats], and [atomic.Int64] while they
// count.
type Counters[N any] struct {
	gateway.ConnCounters[N]
	Passed, Refused N // checks, each of a batch
	Bad             N // requests that are none of the API
	TooLarge        N // requests over MaxBody
	Unauthorized    N // requests without the token
}

// Stats are the counters of a door since it was made.
type Stats struct {
	Counters[int64]
	HTTP httpserve.Stats
}

// Door decides on the requests that programs ask about. It is safe for concurrent use.
type Door struct {
	config    Config
	token     gateway.Token
	admission gateway.Admission // MaxConnections is up to the server, which closes the idlest
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

// Serve serves until ctx ends, then a second at most for the requests that are served, and
// closes the listener.
func (d *Door) Serve(ctx context.Context, l net.Listener) error {
	l = d.admission.Listener(l)
	if d.config.TLS != nil {
		l = tls.NewListener(l, d.config.TLS)
	}
	return d.server.Serve(ctx, l)
}

// Stats returns the counters.
func (d *Door) Stats() Stats {
	return Stats{Counters: countset.Load[Counters[int64]](&d.counters), HTTP: d.server.Stats()}
}

// handler returns the API.
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
		case !d.mayAsk(r):
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

// mayAsk reports whether a request has the token.
func (d *Door) mayAsk(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		token = ""
	}
	return d.token.Accepts(strings.TrimSpace(token))
}
