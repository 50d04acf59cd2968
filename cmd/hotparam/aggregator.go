package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam/cmd/internal/daemon"
	"github.com/hotparam/hotparam/cmd/internal/termtext"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/hotwords"
)

func newAggregator(s streams) *cobra.Command {
	var f aggregatorFlags
	cmd := &cobra.Command{
		Use:   "aggregator --config FILE",
		Short: "Run the aggregator, which finds hot keys and publishes them to Redis",
		Long: `Run the aggregator. It receives counts as StatsD lines, from Kafka, or from the Graphite
behind a StatsD. It finds the keys that are hot by the rules, and publishes them to
Redis. It serves a page of the hot keys at /, its API at /api/v1, and /-/healthy,
/-/ready and /metrics.

SIGTERM shuts it down in order. A second signal stops it at once.

Changed rules are in force about half a second later, and at once with SIGHUP. Counts
and hot keys are kept as far as the new rules allow. An invalid file changes nothing:
the log, /-/ready and /metrics have its error. Other settings of the file, such as
addresses, need a restart.

A flag overrides its variable (HOTPARAM_ and the flag's name, such as HOTPARAM_REDIS),
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
	defer func() { _ = client.Close() }() // the publishers have sent everything
	for _, warning := range set.file.Warnings() {
		set.log.Warn(warning.Message, "line", warning.Line, "hint", warning.Hint)
	}
	conf := set.file.Aggregator
	d, err := daemon.New(daemon.Config{
		Path: f.config, File: set.file, Override: func(file *config.File) error { return (&settings{file: file}).override(&f) },
		Encoding: set.encoding, Redis: client, RedisWords: redacted(conf.Redis.URL), Build: readVersion(), Log: set.log,
	})
	if err != nil {
		return daemonError(err)
	}
	if f.dryRun {
		fmt.Fprintf(s.err, "%s: good, %s, version %s; %s, Redis %s, HTTP %s\n", f.config, hotwords.Plural(len(set.file.Rules.Rules), "rule"),
			set.file.Rules.Version, daemon.SourceWords(set.file), redacted(conf.Redis.URL), conf.HTTP)
		return set.dryRun(ctx, s.err, client, d)
	}
	return daemonError(d.Run(ctx))
}

// daemonError wraps an error of the daemon with its exit code.
func daemonError(err error) error {
	var unusable *daemon.ConfigError
	var unreachable *daemon.UnreachableError
	switch {
	case errors.As(err, &unusable):
		return configError(err)
	case errors.As(err, &unreachable):
		return unreachableError(err)
	}
	return err
}

// redis returns a client for the Redis that holds the hot set.
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

// dryRun checks that the servers that the aggregator needs answer.
func (s *settings) dryRun(ctx context.Context, w io.Writer, client redis.UniversalClient, d *daemon.Daemon) error {
	if err := pingRedis(ctx, client, s.file.Aggregator.Redis.URL); err != nil {
		return err
	}
	server, err := d.Check(ctx)
	if err != nil {
		return daemonError(err)
	}
	answer := "Redis answers"
	if server != "" {
		answer = "Redis and " + server + " answer"
	}
	fmt.Fprintf(w, "%s; hotparam doctor shows the rights of the Redis user\n", answer)
	return nil
}

// loadConfig reads the rules file. It writes the problems of an invalid one to w.
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

// newLogger returns a daemon's logger for the values of --log-format and --log-level.
func newLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	var least slog.Level
	if !slices.Contains(logLevels, level) || least.UnmarshalText([]byte(level)) != nil {
		return nil, usageError(fmt.Errorf("--log-level or HOTPARAM_LOG_LEVEL %q: want %s", level, strings.Join(logLevels, ", ")))
	}
	options := &slog.HandlerOptions{Level: least}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(termtext.NewEscapingWriter(w), options)), nil // TextHandler does not escape DEL
	case "json":
		return slog.New(slog.NewJSONHandler(termtext.NewEscapingWriter(w), options)), nil
	}
	return nil, usageError(fmt.Errorf("--log-format or HOTPARAM_LOG_FORMAT %q: want text or json", format))
}

var logLevels = []string{"debug", "info", "warn", "error"}
