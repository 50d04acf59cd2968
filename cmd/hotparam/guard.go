package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/cmd/internal/gateway/service"
	"github.com/hotparam/hotparam/cmd/internal/page"
	"github.com/hotparam/hotparam/cmd/internal/status"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/rules"
	_ "github.com/hotparam/hotparam/transport/kafka"
)

func newGuard(s streams) *cobra.Command {
	var f guardFlags
	cmd := &cobra.Command{
		Use:   "guard --config FILE",
		Short: "Run the guard as a service, for gateways and programs in any language",
		Long: `Run the guard as a service for programs in other languages, or without changes. It counts,
follows the hot keys in Redis and limits by the rules of the file, as a Go program with the
middleware does. A gateway, or the program itself, asks one of its doors whether a request
may pass:

  --rls    Envoy, by its rate limit service v3 (gRPC)
  --auth   nginx, Caddy, Traefik, Envoy ext_authz and HAProxy's Lua, by HTTP
  --check  any program, by POST /v1/check
  --spoe   HAProxy, by SPOE

An address is host:port or unix:PATH. An address that is neither loopback nor a Unix socket
needs a list of allowed clients in the file. --http serves /-/healthy, /-/ready and /metrics.

SIGTERM shuts it down in order. A second signal stops it at once. Changed rules are in force
about half a second later, and at once with SIGHUP; renewed certificates within a second.
Other settings and tokens need a restart.`,
		Example: `  hotparam guard --config hotparam.yaml --rls 127.0.0.1:9131     # beside Envoy
  hotparam guard --config hotparam.yaml --auth 127.0.0.1:9132    # beside nginx, Caddy or Traefik
  hotparam guard --config hotparam.yaml --spoe unix:/run/hotparam/spoe.sock
  hotparam guard --config hotparam.yaml --check 127.0.0.1:9133
  curl -s localhost:9133/v1/check --json '{"method": "GET", "uri": "/search?q=phone"}'
  hotparam guard --config hotparam.yaml --dry-run                # are file and flags good?`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error { return runGuard(cmd.Context(), s, &f) },
	}
	f.register(cmd.Flags())
	return cmd
}

func runGuard(ctx context.Context, s streams, f *guardFlags) error {
	set, err := f.settings(s.err)
	if err != nil {
		return err
	}
	keys, err := service.ReadKeys(&set.guard, set.log)
	if err != nil {
		return configError(err)
	}
	if f.dryRun {
		fmt.Fprintf(s.err, "%s: good, %s, version %s; %s, HTTP %s\n", f.config, hotwords.Plural(len(set.file.Rules.Rules), "rule"),
			set.file.Rules.Version, doorWords(&set.guard), set.guard.HTTP)
		return set.dryRun(ctx, s.err, f)
	}
	hangups, ignoreHangups := status.CatchHangups()
	defer ignoreHangups()
	options, closeRedis, err := set.attachOptions(f)
	if err != nil {
		return err
	}
	defer closeRedis()
	hp, err := hotparam.Open(ctx, f.config, options...)
	if err != nil {
		return configError(err)
	}
	err = set.serve(ctx, hp, keys, hangups)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), guardCloseTimeout)
	defer cancel()
	return errors.Join(err, hp.Close(ctx)) // sends the remaining counts, and leaves the fleet
}

// guardCloseTimeout bounds the sending of the remaining counts when a guard ends.
const guardCloseTimeout = 5 * time.Second

// serve opens the doors and serves them, and health and metrics, until ctx ends or one fails.
func (s *guardSettings) serve(ctx context.Context, hp *hotparam.Hotparam, keys service.Credentials, hangups *status.Hangups) error {
	guard, err := service.Open(ctx, service.Config{
		Hotparam: hp, Guard: s.guard, Keys: keys, Log: s.log, Changed: s.restartFor,
		LimitsAlone: s.file.Aggregator.Source == config.SourceNone,
	})
	if listenErr := (*service.ListenError)(nil); errors.As(err, &listenErr) {
		return fmt.Errorf("door %s: %w", listenErr.Door, status.WithAnotherAddress(listenErr.Err, "--"+listenErr.Door+" or guard."+listenErr.Door+" of the file"))
	}
	if err != nil {
		return err
	}
	defer guard.Close()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.guard.HTTP)
	if err != nil {
		return fmt.Errorf("health and metrics: %w", status.WithAnotherAddress(err, "--http, HOTPARAM_HTTP or guard.http"))
	}
	defer listener.Close() // the server closes it, if it runs
	s.logUp(guard, listener.Addr())
	server, mux := status.NewServer(status.Config{
		Log: s.log, Build: readVersion(), Ready: guard.Ready, Others: []prometheus.Collector{hp},
		Collect: guard.Collect,
	})
	if s.guard.Pprof {
		// It has no token, so it accepts only programs of this machine, and no requests from web
		// pages.
		protection := page.NewGuard(page.GuardConfig{Listener: listener.Addr(), Log: s.log})
		mux.Handle("GET "+status.PprofPath, protection.Protect(status.Pprof()))
	}
	return guard.Run(ctx, service.RunConfig{
		Status:  func(ctx context.Context) error { return server.Serve(ctx, listener) },
		Alive:   func(ctx context.Context) error { return status.AskHealth(ctx, listener.Addr()) },
		Hangups: hangups.Follow,
	})
}

// dryRun checks that Redis answers, if the rules need it.
func (s *guardSettings) dryRun(ctx context.Context, w io.Writer, f *guardFlags) error {
	if s.file.Aggregator.Source == config.SourceNone && !s.file.Rules.ShareLimits() {
		return nil
	}
	conf := s.redis(f)
	client, err := hotkeys.NewClientFrom(conf)
	if err != nil {
		return usageError(err)
	}
	defer func() { _ = client.Close() }()
	if err := pingRedis(ctx, client, conf.URL); err != nil {
		return err
	}
	fmt.Fprintln(w, "Redis answers; hotparam doctor shows the rights of the Redis user")
	return nil
}

func (s *guardSettings) logUp(guard *service.Service, self net.Addr) {
	rules := s.file.Rules
	args := []any{"version", readVersion().Version, "namespace", rules.Namespace, "rules", len(rules.Rules), "rules_version", rules.Version}
	guard.Listening(func(name string, address net.Addr) { args = append(args, name, address.String()) })
	s.log.Info("guard is up", append(args, "http", self.String())...)
	for i := range rules.Rules {
		if r := &rules.Rules[i]; readsBody(r) {
			s.log.Warn("a rule names fields of the body, which gateways do not pass on, so it makes no keys here", "rule", r.ID)
		}
	}
}

// readsBody reports whether a rule names fields of the body.
func readsBody(r *rules.Rule) bool {
	return slices.ContainsFunc(r.Named(), func(p rules.Param) bool { return p.Source.ReadsBody() })
}
