package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/explain"
	"github.com/hotparam/hotparam/internal/sdnotify"
	"github.com/hotparam/hotparam/internal/status"
	"github.com/hotparam/hotparam/internal/termtext"
)

func newAggregator(s streams) *cobra.Command {
	var f aggregatorFlags
	cmd := &cobra.Command{
		Use:   "aggregator --config FILE",
		Short: "Run the daemon that finds hot keys and publishes them to Redis",
		Long: `Run the daemon. It receives counts as StatsD lines, from Kafka, or from the Graphite
that a StatsD writes to, finds the keys that are hot by the rules, and publishes them
to Redis. It serves a page with what is hot at /, its API at /api/v1, and /-/healthy,
/-/ready and /metrics.

SIGTERM shuts it down in order, a second signal at once.

The rules of a file that has changed are in force about half a second later, and at
once with SIGHUP: what is counted and what is hot stays as far as the new rules allow.
A file that cannot be used changes nothing: the log, /-/ready and /metrics say why.
Other settings of the file, such as addresses, need a restart.

A flag overrides its variable (HOTPARAM_ and the flag's name, as HOTPARAM_REDIS),
which overrides the file.`,
		Example: `  hotparam aggregator --config hotparam.yaml
  hotparam aggregator --config hotparam.yaml --check       # is the file good?
  hotparam aggregator --config hotparam.yaml --source kafka --brokers kafka-1:9092,kafka-2:9092
  hotparam aggregator --config hotparam.yaml --source graphite --graphite https://graphite.example
  hotparam aggregator --config hotparam.yaml --listen :8125,tcp://:8125,unix:///run/hotparam/statsd.sock
  HOTPARAM_REDIS=redis://:secret@10.0.0.5:6379/0 hotparam aggregator --config hotparam.yaml
  curl -s localhost:9125/metrics | grep ^hotparam_`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error { return runAggregator(cmd.Context(), s, f) },
	}
	f.register(cmd.Flags())
	return cmd
}

func runAggregator(ctx context.Context, s streams, f aggregatorFlags) error {
	set, err := f.settings(s.err)
	if err != nil {
		return err
	}
	client, err := set.redis()
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // the publishers have said all
	rules, conf := set.file.Rules, set.file.Aggregator
	for _, warning := range set.file.Warnings() {
		set.log.Warn(warning.Message, "line", warning.Line, "hint", warning.Hint)
	}
	if _, err := set.trust(); err != nil { // the check reads the keys, too
		return err
	}
	if _, err := set.pageToken(); err != nil {
		return err
	}
	if err := checkWebhook(set.file.Webhook); err != nil {
		return err
	}
	if f.dryRun {
		fmt.Fprintf(s.err, "%s: good, %s, version %s; %s, Redis %s, HTTP %s\n",
			f.config, plural(len(rules.Rules), "rule"), rules.Version, sourceWords(set.file), redacted(conf.Redis.URL), conf.HTTP)
		return set.dryRun(ctx, s.err, client)
	}
	hangups, ignoreHangups := status.CatchHangups()
	defer ignoreHangups()
	var p pipeline
	switch conf.Source {
	case config.SourceKafka:
		p, err = newKafkaPipeline(ctx, set, client)
	case config.SourceGraphite:
		p, err = newGraphitePipeline(ctx, set, client)
	default:
		p, err = newStatsDPipeline(ctx, set, client)
	}
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", conf.HTTP)
	if err != nil {
		return fmt.Errorf("health and metrics: %w", withAnotherAddress(err, "--http, HOTPARAM_HTTP or aggregator.http"))
	}
	systemd, err := sdnotify.New()
	if err != nil {
		return err
	}
	file := newRulesFile(f, set, p.reload)
	more, err := newAdmin(set, client, listener.Addr(), file.rules)
	if err != nil {
		return err
	}
	more.handle("POST "+explain.Path, explain.NewHandler(explain.Source{Client: client, Rules: func() explain.Rules {
		return explainRules(set.file, file.rules())
	}}))
	set.log.Info("aggregator is up", "version", readVersion().Version, "namespace", rules.Namespace,
		"rules", len(rules.Rules), "rules_version", rules.Version,
		"source", conf.Source, p.where(), "redis", redacted(conf.Redis.URL), "http", listener.Addr().String(), more.words())
	if p, err = withWebhook(p, set, client); err != nil {
		return err
	}
	if p, err = withBaselines(p, set, client); err != nil {
		return err
	}
	p = &reloadingPipeline{p, file, hangups, systemd}
	if p, err = newReportingPipeline(p, client, set, file); err != nil {
		return err
	}
	return serve(ctx, p, listener, more, systemd, set.log)
}

// redis is a client for the Redis that holds the hot set.
func (s *settings) redis() (redis.UniversalClient, error) {
	client, err := hotkeys.NewClientFrom(hotkeys.ClientConfig(s.file.Aggregator.Redis))
	switch {
	case err == nil:
		return client, nil
	case s.ownRedis:
		return nil, usageError(err) // the file's URL has been checked
	}
	return nil, configError(fmt.Errorf("aggregator.redis: %w", err))
}

// dryRun asks the servers that the aggregator needs whether they answer.
func (s *settings) dryRun(ctx context.Context, w io.Writer, client redis.UniversalClient) error {
	if err := pingRedis(ctx, client, s.file.Aggregator.Redis.URL); err != nil {
		return err
	}
	answer := "Redis answers"
	switch s.file.Aggregator.Source {
	case config.SourceKafka:
		if _, err := newKafkaPipeline(ctx, s, client); err != nil {
			return err
		}
		answer = "Redis and Kafka answer"
	case config.SourceGraphite:
		if _, err := newGraphitePipeline(ctx, s, client); err != nil {
			return err
		}
		answer = "Redis and Graphite answer"
	}
	fmt.Fprintf(w, "%s; hotparam doctor says what the user of Redis may do\n", answer)
	return nil
}

// loadConfig reads the rules file, and writes its errors to w.
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

// newLogger returns the log of a daemon, by --log-format and --log-level.
func newLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	var least slog.Level
	if !slices.Contains(logLevels, level) || least.UnmarshalText([]byte(level)) != nil {
		return nil, usageError(fmt.Errorf("--log-level or HOTPARAM_LOG_LEVEL %q: want %s", level, strings.Join(logLevels, ", ")))
	}
	options := &slog.HandlerOptions{Level: least}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(termtext.NewEscapingWriter(w), options)), nil // it leaves DEL as it is
	case "json":
		return slog.New(slog.NewJSONHandler(termtext.NewEscapingWriter(w), options)), nil
	}
	return nil, usageError(fmt.Errorf("--log-format or HOTPARAM_LOG_FORMAT %q: want text or json", format))
}

var logLevels = []string{"debug", "info", "warn", "error"}
