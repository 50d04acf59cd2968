package demo

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/hotparam/hotparam/internal/httpserve"
)

// twin is the same API without limits. It gets the same requests, to show their latency without
// limits.
type twin struct {
	server   *httpserve.Server
	listener net.Listener
}

func newTwin(ctx context.Context, database *database, log *slog.Logger) (*twin, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(Route, filings(database))
	return &twin{
		server:   httpserve.New(httpserve.Config{Handler: mux, MaxConnections: maxConnections, Grace: lastAnswers, Log: log}),
		listener: listener,
	}, nil
}

func (t *twin) url() string                   { return "http://" + t.listener.Addr().String() }
func (t *twin) run(ctx context.Context) error { return t.server.Serve(ctx, t.listener) }

// filings returns a handler that answers from a database.
func filings(d *database) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !d.query(r.Context()) {
			http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, "filings of company %s\n", r.FormValue("cik"))
	})
}
