package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/gateway"
	"github.com/hotparam/hotparam/internal/sdnotify"
	"github.com/hotparam/hotparam/rules"
	_ "github.com/hotparam/hotparam/transport/kafka"
)

func newGuard(s streams) *cobra.Command {
	var f guardFlags
	cmd := &cobra.Command{
		Use:   "guard --config FILE",
		Short: "Run the guard as a service, for gateways and programs in any language",
		Long: `Run the guard as a service, in front of a program that cannot be changed. It counts,
follows the hot keys in Redis and limits by the rules of the file, as a Go program with the
middleware does. A gateway, or the program itself, asks at one of its doors whether a request
may pass:

  --rls    Envoy, by its rate limit service v3 (gRPC)
  --auth   nginx, Caddy, Traefik, Envoy ext_authz and HAProxy's Lua, by HTTP
  --check  any program, by POST /v1/check
  --spoe   HAProxy, by SPOE

An address is host:port or unix:PATH. One that is neither loopback nor a Unix socket needs
the file to say who may ask. --http serves /-/healthy, /-/ready and /metrics.

SIGTERM shuts it down in order, a second signal at once. The rules of a file that has
changed are in force about half a second later, and at once with SIGHUP, renewed
certificates within a second. Other settings and tokens need a restart.`,
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
	keys, err := readDoorKeys(&set.guard, set.log)
	if err != nil {
		return configError(err)
	}
	if f.dryRun {
		fmt.Fprintf(s.err, "%s: good, %s, version %s; %s, HTTP %s\n", f.config, plural(len(set.file.Rules.Rules), "rule"),
			set.file.Rules.Version, doorWords(&set.guard), set.guard.HTTP)
		return set.dryRun(ctx, s.err, f)
	}
	hangups, ignoreHangups := catchHangups()
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
	g := &guardService{hp: hp, settings: set, hangups: hangups}
	err = g.open(ctx, keys)
	if err == nil {
		g.logUp()
		err = g.run(ctx)
	}
	return errors.Join(err, g.close(ctx))
}

// dryRun asks Redis whether it answers, if the rules need it.
func (s *guardSettings) dryRun(ctx context.Context, w io.Writer, f *guardFlags) error {
	if s.file.Aggregator.Source == config.SourceNone && !slices.ContainsFunc(s.file.Rules.Rules, func(r rules.Rule) bool {
		return r.Limit != nil && r.Limit.Scope != rules.ScopeInstance && r.Limit.Scope != ""
	}) {
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
	fmt.Fprintln(w, "Redis answers; hotparam doctor says what the user of Redis may do")
	return nil
}

// guardService is a guard and its doors.
type guardService struct {
	hp       *hotparam.Hotparam
	settings *guardSettings
	hangups  *hangups
	systemd  *sdnotify.Notifier
	listener net.Listener // of health and metrics
	doors    []*guardDoor
	status   guardStatus
}

// open opens all listeners and makes the doors. The caller must call close, even if open fails.
func (g *guardService) open(ctx context.Context, keys doorKeys) (err error) {
	if g.systemd, err = sdnotify.New(); err != nil {
		return err
	}
	conf := g.settings.guard
	decider, err := gateway.New(gateway.Config{
		Hotparam: g.hp, RawPaths: conf.Paths == config.PathsRaw, TrustCaller: conf.TrustCaller, Log: g.settings.log,
	})
	if err != nil {
		return err
	}
	if g.doors, err = makeDoors(&conf, decider, keys, g.settings.log); err != nil {
		return err
	}
	for _, d := range g.doors {
		if err := d.open(ctx); err != nil {
			return fmt.Errorf("door %s: %w", d.name, withAnotherAddress(err, "--"+d.name+" or guard."+d.name+" of the file"))
		}
	}
	var lc net.ListenConfig
	if g.listener, err = lc.Listen(ctx, "tcp", conf.HTTP); err != nil {
		return fmt.Errorf("health and metrics: %w", withAnotherAddress(err, "--http, HOTPARAM_HTTP or guard.http"))
	}
	return nil
}

// closeTimeout bounds the sending of what is left when a guard ends.
const guardCloseTimeout = 5 * time.Second

// close closes the listeners that run has not closed, sends the remaining counts, and leaves the
// fleet.
func (g *guardService) close(ctx context.Context) error {
	for _, d := range g.doors {
		d.close()
	}
	if g.listener != nil {
		_ = g.listener.Close() // the server has already closed it if it ran
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), guardCloseTimeout)
	defer cancel()
	err := g.hp.Close(ctx)
	g.systemd.Close()
	return err
}

func (g *guardService) logUp() {
	log := g.settings.log
	rules := g.settings.file.Rules
	args := []any{"version", readVersion().Version, "namespace", rules.Namespace, "rules", len(rules.Rules), "rules_version", rules.Version}
	for _, d := range g.doors {
		args = append(args, d.name, d.listener.Addr().String())
	}
	log.Info("guard is up", append(args, "http", g.listener.Addr().String())...)
	for i := range rules.Rules {
		if r := &rules.Rules[i]; readsBody(r) {
			log.Warn("a rule names fields of the body, which gateways do not pass on: it makes no keys of them here", "rule", r.ID)
		}
	}
}

// readsBody reports whether a rule names fields of the body.
func readsBody(r *rules.Rule) bool {
	for _, p := range r.Named() {
		if p.Source.ReadsBody() {
			return true
		}
	}
	return false
}
