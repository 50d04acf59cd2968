package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	logfollow "github.com/hotparam/hotparam/cmd/internal/follow"
	"github.com/hotparam/hotparam/cmd/internal/status"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/accesslog"
)

type followFlags struct {
	config, instance    string
	http                string
	logFormat, logLevel string
	form                replayFlags // only the flags for the form of the log are used
	fromStart           bool
}

func newFollow(s streams) *cobra.Command {
	var f followFlags
	cmd := &cobra.Command{
		Use:   "follow --config FILE LOG...",
		Short: "Count the requests of access logs as they are written: hot parameters without touching a request",
		Long: `Count the requests of access logs as they are written, and send the counts as an instance
does. Hot parameters are found live, without touching a request. The aggregator publishes
them to list, top, watch, alerts, and guards elsewhere.

It reads the formats of replay: combined format, JSON lines of Caddy, Traefik, Envoy and
nginx, and others with --fields, but plain text only. "-" is standard input. It follows each
path through rotation by rename and by truncation. A file may appear later. It is read from
its end, or with --from-start from its beginning.

A request is counted at the time in its line. Clocks should therefore agree, and lines should
arrive soon: a line more than 2 s after its window is dropped and counted as old. For nginx,
omit buffer= of access_log, or add flush=1s.

Rules with a limit limit nothing here: the requests have been served. Rules with count: bytes
or ms need logs that have them, those by header or cookie logs with these. A changed rules
file is in force within a second, and at once with SIGHUP.

With --http it serves /-/healthy, /-/ready and /metrics: what was read, what was refused, and
how far it is behind. On SIGTERM it reads and sends the lines written so far, and ends.`,
		Example: `  hotparam follow --config hotparam.yaml /var/log/nginx/access.log
  hotparam follow --config hotparam.yaml /var/log/apache2/*.log
  hotparam follow --config hotparam.yaml --fields 'time=ts,method=http.verb,uri=http.url' api.jsonl
  hotparam follow --config hotparam.yaml --http 127.0.0.1:9127 access.log
  kubectl logs --follow --since 1s api | hotparam follow --config hotparam.yaml -`,
		Args: args("LOG..."),
		RunE: func(cmd *cobra.Command, logs []string) error {
			return runFollow(cmd.Context(), s, f, logs)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.config, "config", "", "`file` with the rules and the addresses")
	flags.StringVar(&f.form.format, "format", "auto", "`format` of the logs: "+accesslog.Formats)
	flags.StringVar(&f.form.fields, "fields", "", "`places` of the fields in JSON or delimited lines, as for replay")
	flags.StringVar(&f.form.clock, "time-format", "", "`format` of the time of --fields, as for replay")
	flags.BoolVar(&f.fromStart, "from-start", false, "also count the lines that the logs already have, as far back as the longest window")
	flags.StringVar(&f.instance, "instance", "", "`name` of this sender; by default the host and the process id")
	flags.StringVar(&f.http, "http", "", "`address` for health and metrics; by default they are not served")
	flags.StringVar(&f.logFormat, "log-format", "text", "`format` of the log on standard error: text or json")
	flags.StringVar(&f.logLevel, "log-level", "info", "least `level` of logged lines: debug, info, warn or error")
	return cmd
}

func runFollow(ctx context.Context, s streams, f followFlags, logs []string) error {
	if f.config == "" {
		return usageError(errors.New("which rules, and where do counts go? Give --config"))
	}
	if slices.Contains(logs, "-") && len(logs) > 1 {
		return usageError(errors.New("standard input (-) cannot be combined with files"))
	}
	if f.http != "" {
		if err := checkAddress("http", f.http); err != nil {
			return usageError(err)
		}
	}
	format, fields, err := f.form.logForm()
	if err != nil {
		return err
	}
	log, err := newLogger(s.err, f.logFormat, f.logLevel)
	if err != nil {
		return err
	}
	file, err := loadConfig(s.err, f.config)
	if err != nil {
		return err
	}
	remarkFollowed(s, file)
	hangups, ignoreHangups := status.CatchHangups()
	defer ignoreHangups()
	follower, err := logfollow.New(logfollow.Config{
		Path: f.config, Logs: logs, Stdin: s.in, Format: format, Fields: fields, FromStart: f.fromStart, Instance: f.instance, Log: log,
	})
	if err != nil {
		return configError(err)
	}
	service := &logfollow.Service{Follower: follower, Hangups: hangups, Build: readVersion(), Log: log}
	if err := service.Open(ctx, f.http); err != nil {
		return errors.Join(err, follower.Close())
	}
	started := []any{"logs", logs, "rules", len(file.Rules.Rules), "version", file.Rules.Version}
	if addr := service.Addr(); addr != nil {
		started = append(started, "http", addr.String())
	}
	log.Info("following", started...)
	err = service.Run(ctx)
	stats := follower.Stats()
	log.Info("done", "requests", stats.Requests, "bad", stats.Bad, "old", stats.Old, "future", stats.Future, "rotated", stats.Rotated, "truncated", stats.Truncated)
	return err
}

// remarkFollowed warns about rules that need more than access logs provide.
func remarkFollowed(s streams, file *config.File) {
	for i := range file.Rules.Rules {
		r := &file.Rules.Rules[i]
		showNotInLogs(s.err, r)
		for _, t := range r.Hot {
			if t.Rate.Per > 0 && t.Rate.Per < time.Second {
				fmt.Fprintf(s.err, "rule %q has a window of %s, but many logs have whole seconds: hot keys may differ\n", r.ID, t.Rate.Per)
				break
			}
		}
	}
}
