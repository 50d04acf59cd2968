package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hotparam/hotparam"
)

// countingVariable makes the test program an instance like the example API, whose handler takes time
// and counts its runs.
const countingVariable = "HOTPARAM_E2E_COUNTING"

// handlerTime is how long the handler of a counting instance takes.
const handlerTime = 10 * time.Millisecond

// beCountingInstance serves until the process is asked to end, and returns its exit code.
func beCountingInstance(args []string) int {
	flags := flag.NewFlagSet("counting", flag.ExitOnError)
	listen, file := flags.String("listen", "127.0.0.1:0", ""), flags.String("config", "", "")
	_ = flags.Parse(args) // which exits
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := serveCounting(ctx, *listen, *file); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serveCounting(ctx context.Context, addr, file string) error {
	hp, err := hotparam.Open(ctx, file)
	if err != nil {
		return err
	}
	var runs atomic.Int64
	api := http.NewServeMux()
	api.HandleFunc("GET /search", func(w http.ResponseWriter, r *http.Request) {
		q := r.FormValue("q")
		if q == "phone" {
			runs.Add(1)
		}
		time.Sleep(handlerTime)
		fmt.Fprint(w, resultsFor(q))
	})
	mux := http.NewServeMux()
	mux.Handle("/", hp.Handler(api))
	mux.HandleFunc("GET /debug/hot", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(struct { // the test has ended if there is an error
			Hot any
			hotparam.Stats
			Runs int64
		}{hp.HotKeys(), hp.Stats(), runs.Load()})
	})
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: patience}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	fmt.Fprintf(os.Stderr, "api is up address=%s\n", l.Addr())
	if err = server.Serve(l); errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, hp.Close(context.WithoutCancel(ctx)))
}

// resultsFor returns the answer to a search.
func resultsFor(q string) string { return fmt.Sprintf("results for %q", q) }
