package cost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hotparam/hotparam"
)

// instanceVariable makes this program an instance of the API. Its value is an [instanceConfig].
const instanceVariable = "HOTPARAM_COST_INSTANCE"

// instanceConfig is what an instance has to know.
type instanceConfig struct {
	Database    string // address of PostgreSQL
	Connections int    // size of the pool of connections
	Limiter     Limiter
	Rules       string // the rules file, for [Hotparam]
}

// BeInstance serves the API and returns true if the environment asks this program for that.
// Programs that call [Run] must call it first.
func BeInstance() bool {
	text := os.Getenv(instanceVariable)
	if text == "" {
		return false
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serveInstance(ctx, text); err != nil {
		slog.Error("instance", "err", err)
		os.Exit(1)
	}
	return true
}

func serveInstance(ctx context.Context, text string) (err error) {
	var c instanceConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return fmt.Errorf("%s: %w", instanceVariable, err)
	}
	options, err := pgxpool.ParseConfig(c.Database)
	if err != nil {
		return err
	}
	options.MaxConns, options.MinConns = int32(c.Connections), int32(c.Connections)
	pool, err := pgxpool.NewWithConfig(ctx, options)
	if err != nil {
		return err
	}
	defer pool.Close()
	handler := newAPI(pool)
	switch c.Limiter {
	case Hotparam:
		hp, openErr := hotparam.Open(ctx, c.Rules)
		if openErr != nil {
			return openErr
		}
		defer func() { err = errors.Join(err, hp.Close(context.WithoutCancel(ctx))) }()
		handler = hp.Handler(handler)
	case Sentinel:
		if handler, err = withSentinel(handler); err != nil {
			return err
		}
	}
	return serveHTTP(ctx, handler)
}

// serveHTTP serves on a free port until ctx ends.
func serveHTTP(ctx context.Context, handler http.Handler) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // cancels the queries in flight
	defer stop()
	slog.Info("instance is up", "address", listener.Addr().String())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
