package hotparam_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/rules"
)

// On SIGTERM a server drains its requests and then closes Hotparam.
func ExampleOpen() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	hp, err := hotparam.Open(ctx, "hotparam.yaml", hotparam.WithShadow(), hotparam.WithSignals())
	if err != nil {
		slog.Error("the file cannot be used", "err", err)
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /search", func(http.ResponseWriter, *http.Request) {})
	server := &http.Server{Addr: ":8080", Handler: hp.Handler(mux), ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("serve", "err", err)
			stop()
		}
	}()
	<-ctx.Done()
	limit, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := errors.Join(server.Shutdown(limit), hp.Close(limit)); err != nil {
		slog.Error("shut down", "err", err)
	}
}

// Requests that are not HTTP are counted and decided in the same way.
func ExampleHotparam_Enter() {
	hp, err := hotparam.Open(context.Background(), "hotparam.yaml")
	if err != nil {
		slog.Error("the file cannot be used", "err", err)
		return
	}
	defer func() { _ = hp.Close(context.Background()) }()
	d := hp.Enter(context.Background(), "SearchService/Find", rules.Param{Name: "q", Value: "phone"})
	if !d.Allowed {
		slog.Info("too many requests", "retry after", d.RetryAfter)
	}
}
