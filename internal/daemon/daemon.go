package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/baseline"
	"github.com/hotparam/hotparam/internal/explain"
	"github.com/hotparam/hotparam/internal/sdnotify"
	"github.com/hotparam/hotparam/internal/status"
	"github.com/hotparam/hotparam/internal/wire"
)

// Config is what a daemon is given.
type Config struct {
	// Path is the rules file, which is followed. File is what it said, under the flags.
	Path string
	File *config.File
	// Override puts the flags over a file that is read later, and checks it.
	Override func(*config.File) error
	// Encoding is how senders of StatsD lines write keys.
	Encoding wire.Encoding
	// Redis holds the hot set. RedisWords is its URL without passwords, for the log.
	Redis      redis.UniversalClient
	RedisWords string
	Build      status.Build
	Log        *slog.Logger
}

// settings are what all of the daemon goes by.
type settings struct {
	path     string
	file     *config.File
	override func(*config.File) error
	encoding wire.Encoding
	build    status.Build
	log      *slog.Logger
	days     *baseline.Days
}

// Daemon is an aggregator as a process.
type Daemon struct {
	*settings
	client     redis.UniversalClient
	redisWords string
}

// New reads the keys and tokens that the file names, so that one that is missing is told at
// once, and makes no call. The error is a [ConfigError].
func New(c Config) (*Daemon, error) {
	set := &settings{
		path: c.Path, file: c.File, override: c.Override, encoding: c.Encoding, build: c.Build, log: c.Log, days: newDays(c.File.Aggregator),
	}
	if _, err := set.trust(); err != nil {
		return nil, err
	}
	if _, err := set.file.Aggregator.PageToken(); err != nil {
		return nil, configError(err)
	}
	if err := checkWebhook(set.file.Webhook); err != nil {
		return nil, err
	}
	return &Daemon{set, c.Redis, c.RedisWords}, nil
}

// Check asks the server that counts come from whether it answers, and returns what it is; "" if
// there is none to be asked. The error is a [ConfigError] or an [UnreachableError].
func (d *Daemon) Check(ctx context.Context) (server string, err error) {
	from := sources[d.file.Aggregator.Source]
	if from.server != "" {
		_, err = from.open(ctx, d.settings, d.client)
	}
	return from.server, err
}

// Run works until ctx ends, then ends in order.
func (d *Daemon) Run(ctx context.Context) error {
	hangups, ignoreHangups := status.CatchHangups()
	defer ignoreHangups()
	rules, conf, client := d.file.Rules, d.file.Aggregator, d.client
	p, err := sources[conf.Source].open(ctx, d.settings, client)
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
	file := newRulesFile(d.settings, p.reload)
	more, err := newAdmin(d.settings, client, listener.Addr(), file.rules)
	if err != nil {
		return err
	}
	more.handle("POST "+explain.Path, explain.NewHandler(explain.Source{Client: client, Rules: func() explain.Rules {
		return explain.RulesOf(d.file, file.rules())
	}}))
	d.log.Info("aggregator is up", "version", d.build.Version, "namespace", rules.Namespace,
		"rules", len(rules.Rules), "rules_version", rules.Version,
		"source", conf.Source, p.where(), "redis", d.redisWords, "http", listener.Addr().String(), more.words())
	if p, err = withWebhook(p, d.settings, client); err != nil {
		return err
	}
	if p, err = withBaselines(p, d.settings, client); err != nil {
		return err
	}
	p = &reloadingPipeline{p, file, hangups, systemd}
	if p, err = newReportingPipeline(p, client, d.settings, file); err != nil {
		return err
	}
	return serve(ctx, p, listener, more, systemd, d.settings)
}
