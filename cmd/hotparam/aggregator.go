package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/wire"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
)

type aggregatorFlags struct {
	config, listen, redis, http, encoding, logFormat string
	check                                            bool
}

func newAggregator(s streams) *cobra.Command {
	var f aggregatorFlags
	cmd := &cobra.Command{
		Use:   "aggregator --config FILE",
		Short: "Run the daemon that finds hot keys and publishes them to Redis",
		Long: `Run the daemon: it takes counts as StatsD lines over UDP, finds the keys that
are hot by the rules, and publishes them to Redis. SIGTERM ends it in order, a
second signal at once. It serves /-/healthy, /-/ready and /metrics.

A flag goes before its variable (HOTPARAM_LISTEN, HOTPARAM_REDIS, HOTPARAM_HTTP),
which goes before the file.`,
		Example: `  hotparam aggregator --config hotparam.yaml
  hotparam aggregator --config hotparam.yaml --check       # is the file good?
  HOTPARAM_REDIS=redis://:secret@10.0.0.5:6379/0 hotparam aggregator --config hotparam.yaml
  curl -s localhost:9125/metrics | grep ^hotparam_`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return runAggregator(cmd.Context(), s, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.config, "config", "", "`file` with the rules and the daemon's settings")
	flags.StringVar(&f.listen, "listen", "", "UDP `address` for StatsD (default 127.0.0.1:8125)")
	flags.StringVar(&f.redis, "redis", "", "Redis `URL` (default redis://127.0.0.1:6379/0)")
	flags.StringVar(&f.http, "http", "", "`address` for health and metrics (default 127.0.0.1:9125)")
	flags.StringVar(&f.encoding, "encoding", "plain", "how senders write keys: plain or strict")
	flags.StringVar(&f.logFormat, "log-format", "text", "text or json")
	flags.BoolVar(&f.check, "check", false, "check the file and the flags, then exit")
	return cmd
}

// settings are the daemon's, after flags, variables and file.
type settings struct {
	file     *config.File
	encoding wire.Encoding
	log      *slog.Logger
}

func (f *aggregatorFlags) settings(w io.Writer) (*settings, error) {
	if f.config == "" {
		return nil, usageError(errors.New("--config is missing: it names the file with the rules"))
	}
	encoding, err := wire.ParseEncoding(f.encoding)
	if err != nil {
		return nil, usageError(fmt.Errorf("--encoding: %w", err))
	}
	log, err := newLogger(w, f.logFormat)
	if err != nil {
		return nil, err
	}
	file, err := loadConfig(w, f.config)
	if err != nil {
		return nil, err
	}
	a := file.Aggregator.WithDefaults()
	override(&a.Listen, f.listen, "HOTPARAM_LISTEN")
	override(&a.Redis, f.redis, "HOTPARAM_REDIS")
	override(&a.HTTP, f.http, "HOTPARAM_HTTP")
	if err := errors.Join(checkAddress("listen", a.Listen), checkAddress("http", a.HTTP)); err != nil {
		return nil, usageError(err)
	}
	file.Aggregator = a
	return &settings{file: file, encoding: encoding, log: log}, nil
}

// loadConfig reads the rules file; what is wrong with it goes to w.
func loadConfig(w io.Writer, path string) (*config.File, error) {
	file, err := config.Load(path)
	var problems config.Problems
	switch {
	case errors.As(err, &problems):
		if err := problems.WriteText(w); err != nil {
			return nil, err
		}
		return nil, configError(errReported)
	case err != nil:
		return nil, configError(err)
	}
	return file, nil
}

// override sets a value from a flag, else a variable, else leaves it.
func override(value *string, flag, variable string) {
	if env := os.Getenv(variable); env != "" {
		*value = env
	}
	if flag != "" {
		*value = flag
	}
}

// checkAddress checks an address that a flag or a variable gave; those of the file
// have been checked.
func checkAddress(name, address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("--%s or HOTPARAM_%s %q: want host:port, for example 127.0.0.1:9125", name, strings.ToUpper(name), address)
	}
	return nil
}

func newLogger(w io.Writer, format string) (*slog.Logger, error) {
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, nil)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, nil)), nil
	}
	return nil, usageError(fmt.Errorf("--log-format %q: want text or json", format))
}

func runAggregator(ctx context.Context, s streams, f aggregatorFlags) error {
	set, err := f.settings(s.err)
	if err != nil {
		return err
	}
	rules, conf := set.file.Rules, set.file.Aggregator
	client, err := hotkeys.NewClient(conf.Redis)
	if err != nil {
		return usageError(err) // a file's has been checked: it is a flag's or a variable's
	}
	defer func() { _ = client.Close() }() // the publisher has said all
	if f.check {
		fmt.Fprintf(s.err, "%s: good, %d rules, version %s; StatsD %s, Redis %s, HTTP %s\n",
			f.config, len(rules.Rules), rules.Version, conf.Listen, redacted(conf.Redis), conf.HTTP)
		return nil
	}
	publisher, err := hotkeys.NewPublisher(client, hotkeys.PublisherConfig{Namespace: rules.Namespace, Logger: set.log})
	if err != nil {
		return err
	}
	agg, err := aggregator.New(ctx, aggregator.Config{
		Rules: rules, Publisher: publisher, Listen: conf.Listen, Encoding: set.encoding, Memory: conf.Memory,
	})
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", conf.HTTP)
	if err != nil {
		return fmt.Errorf("health and metrics: %w", err)
	}
	set.log.Info("aggregator is up", "version", readVersion().Version, "namespace", rules.Namespace,
		"rules", len(rules.Rules), "rules_version", rules.Version,
		"statsd", agg.Addr().String(), "redis", redacted(conf.Redis), "http", listener.Addr().String())
	return serve(ctx, set.log, agg, publisher, listener)
}

// serve runs the parts until ctx ends, then ends them in the order of the data:
// what has arrived is counted, and what that changes is published.
func serve(ctx context.Context, log *slog.Logger, agg *aggregator.Aggregator, publisher *hotkeys.Publisher, listener net.Listener) error {
	publishing, published := context.WithCancel(context.WithoutCancel(ctx))
	defer published()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer published()
		err := agg.Run(ctx)
		log.Info("aggregator has drained", "counts", agg.Stats().Decoder.Counts)
		return err
	})
	group.Go(func() error { return publisher.Run(publishing) })
	group.Go(func() error { return serveHTTP(ctx, listener, newStatusHandler(agg, publisher)) })
	return group.Wait()
}

func serveHTTP(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = server.Shutdown(limit) // a scrape that hangs does not hold us up
	})
	err := server.Serve(listener)
	if !stop() {
		<-done
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("health and metrics: %w", err)
}

// newStatusHandler serves health, readiness and metrics.
func newStatusHandler(agg *aggregator.Aggregator, publisher *hotkeys.Publisher) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(newMetrics(agg, publisher))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "healthy") })
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, _ *http.Request) {
		switch stats := publisher.Stats(); {
		case stats.Fenced:
			http.Error(w, "not ready: another aggregator publishes for this namespace", http.StatusServiceUnavailable)
		case !stats.Connected:
			http.Error(w, "not ready: Redis cannot be reached", http.StatusServiceUnavailable)
		default:
			fmt.Fprintln(w, "ready")
		}
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}

// redacted is a Redis URL without its password.
func redacted(url string) string {
	at := strings.LastIndexByte(url, '@')
	scheme := strings.Index(url, "://")
	if at < 0 || scheme < 0 || at < scheme {
		return url
	}
	return url[:scheme+3] + "…" + url[at:]
}
