package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/pflag"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/middleware"
)

type guardFlags struct {
	config, name, redis, http string
	rls, auth, check, spoe    string
	logFormat, logLevel       string
	shadow, pprof, dryRun     bool
}

func (f *guardFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.config, "config", "", "`file` with the rules and the guard's settings")
	flags.StringVar(&f.rls, "rls", "", "`address` for Envoy's rate limit service")
	flags.StringVar(&f.auth, "auth", "", "`address` for gateways that ask over HTTP: at /forwarded, /original, /nginx and /envoy, unless the file names paths")
	flags.StringVar(&f.check, "check", "", "`address` for programs: POST /v1/check")
	flags.StringVar(&f.spoe, "spoe", "", "`address` for HAProxy's SPOE")
	flags.StringVar(&f.http, "http", "", "`address` for health and metrics (default "+config.Guard{}.WithDefaults().HTTP+")")
	flags.StringVar(&f.redis, "redis", "", "Redis `URL` or host:port (default aggregator.redis of the file)")
	flags.StringVar(&f.name, "name", "", "`name` of this instance among others (default the host's name and the process id)")
	flags.BoolVar(&f.shadow, "shadow", false, "refuse no request, but count the refusals")
	flags.BoolVar(&f.pprof, "pprof", false, "serve profiles at /debug/pprof/ of --http, which must be a loopback address")
	flags.StringVar(&f.logFormat, "log-format", "text", "text or json")
	flags.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.BoolVar(&f.dryRun, "dry-run", false, "check the file, the flags and the servers they name, then exit")
}

// guardSettings are the settings of the guard, merged from flags, variables and file.
type guardSettings struct {
	file  *config.File
	guard config.Guard
	log   *slog.Logger
	// changed lists the fields of section guard whose values in the file differ from those in use.
	changed atomic.Pointer[[]string]
}

func (f *guardFlags) settings(w io.Writer) (*guardSettings, error) {
	file, log, err := loadDaemon(w, f.config, f.logFormat, f.logLevel)
	if err != nil {
		return nil, err
	}
	s := &guardSettings{file: file, log: log}
	if s.guard, err = f.override(file.Guard); err != nil {
		return nil, err
	}
	for _, warning := range file.Warnings() {
		log.Warn(warning.Message, "line", warning.Line, "hint", warning.Hint)
	}
	return s, nil
}

// override applies the flags and variables to section guard.
func (f *guardFlags) override(g config.Guard) (config.Guard, error) {
	if f.http != "" {
		g.HTTP = f.http
		if err := checkAddress("http", f.http); err != nil {
			return g, usageError(err)
		}
	}
	for flag, to := range map[string]struct {
		value   string
		setting *string
	}{"rls": {f.rls, &g.RLS.Listen}, "check": {f.check, &g.Check.Listen}, "spoe": {f.spoe, &g.SPOE.Listen}, "auth": {f.auth, nil}} {
		if to.value == "" {
			continue
		}
		if err := config.CheckDoorAddress(to.value); err != nil {
			return g, usageError(fmt.Errorf("--%s or HOTPARAM_%s %q: %w", flag, strings.ToUpper(flag), to.value, err))
		}
		if to.setting != nil {
			*to.setting = to.value
		}
	}
	g.Pprof = g.Pprof || f.pprof
	g = g.WithDefaults()
	if f.auth != "" {
		if len(g.Auth) == 0 {
			g.Auth = []config.AuthEndpoint{{}}
		}
		for i := range g.Auth {
			g.Auth[i].Listen = f.auth
		}
	}
	if err := g.Agree(); err != nil {
		return g, configError(err)
	}
	if doorWords(&g) == "" {
		return g, usageError(errors.New("no door is open: give an address by --rls, --auth, --check or --spoe, or in section guard of the file"))
	}
	return g, nil
}

// compare returns a function that compares the section guard of a changed file with the settings in
// use. It applies none of it: listeners and access rights change together or not at all.
func (s *guardSettings) compare(f *guardFlags) func(*config.File) {
	return func(file *config.File) {
		next, err := f.override(file.Guard)
		changed := next.Differs(s.guard)
		was := s.restartFor()
		s.changed.Store(&changed)
		switch {
		case slices.Equal(changed, was):
		case len(changed) == 0:
			s.log.Info("section guard of the file is again the one that the guard started with")
		case err != nil:
			s.log.Warn("section guard of the file has changed, and the guard would not start with it", "fields", strings.Join(changed, ","), "err", err)
		default:
			s.log.Warn("section guard of the file has changed: it needs a restart", "fields", strings.Join(changed, ","))
		}
	}
}

// restartFor returns the fields of section guard that need a restart to take effect.
func (s *guardSettings) restartFor() []string {
	if changed := s.changed.Load(); changed != nil {
		return *changed
	}
	return nil
}

// doorWords returns the open doors and their addresses.
func doorWords(g *config.Guard) string {
	var words []string
	for name, d := range g.Doors() {
		words = append(words, name+" "+d.Listen)
	}
	return strings.Join(words, ", ")
}

// redis returns the configuration of Redis, from the flag or the file.
func (s *guardSettings) redis(f *guardFlags) hotkeys.ClientConfig {
	conf := hotkeys.ClientConfig(s.file.Aggregator.WithDefaults().Redis)
	override(&conf.URL, f.redis)
	return conf
}

// attachOptions returns the options of the guard, and a function that closes their resources.
func (s *guardSettings) attachOptions(f *guardFlags) (options []hotparam.Option, closing func(), err error) {
	closing = func() {}
	options = []hotparam.Option{
		hotparam.WithLogger(s.log), gateway.WithContext(), hotparam.WithMiddleware(middleware.WithHeaders()),
		hotparam.WithOnReload(s.compare(f)),
	}
	if f.name != "" {
		options = append(options, hotparam.WithName(f.name))
	}
	if f.shadow {
		options = append(options, hotparam.WithShadow())
	}
	if f.redis != "" {
		client, err := hotkeys.NewClientFrom(s.redis(f))
		if err != nil {
			return nil, closing, usageError(err)
		}
		options = append(options, hotparam.WithRedis(client))
		closing = func() { _ = client.Close() } // the guard has ended
	}
	return options, closing, nil
}
