package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/cmd/internal/explain"
	"github.com/hotparam/hotparam/cmd/internal/history"
	"github.com/hotparam/hotparam/cmd/internal/sdnotify"
	"github.com/hotparam/hotparam/cmd/internal/status"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/config/rulesfile"
	"github.com/hotparam/hotparam/internal/admitted"
	"github.com/hotparam/hotparam/internal/baseline"
	"github.com/hotparam/hotparam/internal/wire"
)

// Config configures a daemon.
type Config struct {
	// Path is the rules file, which the daemon follows. File is its parsed content, with the
	// flags applied.
	Path string
	File *config.File
	// Override applies the flags to a file that is read later, and checks it.
	Override func(*config.File) error
	// Encoding is the encoding of keys in StatsD lines.
	Encoding wire.Encoding
	// Redis holds the hot set. RedisWords is its URL without passwords, for the log.
	Redis      redis.UniversalClient
	RedisWords string
	Build      status.Build
	Log        *slog.Logger
}

// settings are what all parts of the daemon share.
type settings struct {
	Config
	days     *baseline.Days
	outcomes *admitted.Totals // outcomes of hot keys' requests
	history  *histories       // nil without a history
}

// Daemon is an aggregator that runs as a process.
type Daemon struct{ *settings }

// New returns a daemon. It reads the keys and tokens that the file names, so that a missing one
// is reported at once, and makes no network call. The error is a [ConfigError].
func New(c Config) (*Daemon, error) {
	past, err := newHistories(&c)
	if err != nil {
		return nil, err
	}
	set := &settings{c, newDays(c.File.Aggregator), new(admitted.Totals), past}
	if _, err := set.trust(); err != nil {
		return nil, err
	}
	if _, err := set.File.Aggregator.PageToken(); err != nil {
		return nil, configError(err)
	}
	if err := checkWebhook(set.File.Webhook); err != nil {
		return nil, err
	}
	return &Daemon{set}, nil
}

// Check connects to the server of the source and returns its name, such as "Kafka". The name is
// "" if the source has no server. The error is a [ConfigError] or an [UnreachableError].
func (d *Daemon) Check(ctx context.Context) (server string, err error) {
	from := sources[d.File.Aggregator.Source]
	if from.server != "" {
		_, err = from.open(ctx, d.settings)
	}
	return from.server, err
}

// Run runs the daemon until ctx ends, then shuts it down in order.
func (d *Daemon) Run(ctx context.Context) error {
	hangups, ignoreHangups := status.CatchHangups()
	defer ignoreHangups()
	defer d.history.close()
	rules, conf := d.File.Rules, d.File.Aggregator
	p, err := sources[conf.Source].open(ctx, d.settings)
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", conf.HTTP)
	if err != nil {
		return fmt.Errorf("health and metrics: %w", status.WithAnotherAddress(err, "--http, HOTPARAM_HTTP or aggregator.http"))
	}
	systemd, err := sdnotify.New()
	if err != nil {
		return err
	}
	file := newRulesFile(d.settings, p)
	more, err := newAdmin(d.settings, listener.Addr(), file.Rules)
	if err != nil {
		return err
	}
	more.handle("POST "+explain.Path, explain.NewHandler(explain.Source{Client: d.Redis, Rules: func() explain.Rules {
		return explain.RulesOf(d.File, file.Rules())
	}}))
	if more.page != nil {
		more.handle("GET "+history.Path, d.history.handler())
	}
	d.Log.Info("aggregator is up", "version", d.Build.Version, "namespace", rules.Namespace,
		"rules", len(rules.Rules), "rules_version", rules.Version,
		"source", conf.Source, p.where(), "redis", d.RedisWords, "http", listener.Addr().String(), more.accessAttr())
	whole, err := accompany(p, file, d.settings)
	if err != nil {
		return err
	}
	whole.beside = append(whole.beside, companion{run: func(ctx context.Context) error {
		return hangups.Follow(ctx, func() { whole.reloadNow(systemd) })
	}})
	return whole.serve(ctx, listener, more, systemd, d.settings)
}

// newRulesFile returns the follower of the daemon's file.
func newRulesFile(set *settings, p pipeline) *rulesfile.Follower {
	return rulesfile.New(rulesfile.Config{
		Path: set.Path, Start: set.File, Prepare: set.Override, Log: set.Log,
		Put: func(file *config.File) error { return p.reload(file.Rules) },
		Settings: func(file *config.File) map[string]any {
			a := file.Aggregator
			a.HoldDuringOutage = 0 // instances apply it without a restart
			return map[string]any{"aggregator": a, "statsd": file.StatsD, "kafka": file.Kafka, "graphite": file.Graphite, "webhook": file.Webhook}
		},
	})
}
