package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/wire"
)

type aggregatorFlags struct {
	config, source, name, listen, brokers, topic, group  string
	graphite, redis, http, encoding, logFormat, logLevel string
	dryRun, pprof                                        bool
}

func (f *aggregatorFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.config, "config", "", "`file` with the rules and the aggregator's settings")
	flags.StringVar(&f.source, "source", "", "how counts come: statsd, kafka or graphite (default aggregator.source of the file, or statsd)")
	flags.StringVar(&f.name, "name", "", "`name` of this aggregator among others, for example agg-1 or the host's name")
	flags.StringVar(&f.listen, "listen", "", "`addresses` for StatsD, with commas between: host:port, tcp://, unix://, unixstream:// (default aggregator.listen of the file, or 127.0.0.1:8125)")
	flags.StringVar(&f.brokers, "brokers", "", "`addresses` of Kafka brokers, with commas between (default kafka.brokers of the file, or 127.0.0.1:9092)")
	flags.StringVar(&f.topic, "topic", "", "Kafka `topic` with the counts (default kafka.topic of the file, or "+wire.DefaultTopic+")")
	flags.StringVar(&f.group, "group", "", "Kafka consumer `group` (default kafka.group of the file, or hotparam-{namespace})")
	flags.StringVar(&f.graphite, "graphite", "", "`URL` of Graphite (default graphite.url of the file, or http://127.0.0.1:8080)")
	flags.StringVar(&f.redis, "redis", "", "Redis `URL` or host:port (default aggregator.redis of the file, or redis://127.0.0.1:6379/0)")
	flags.StringVar(&f.http, "http", "", "`address` for health and metrics (default aggregator.http of the file, or 127.0.0.1:9125)")
	flags.StringVar(&f.encoding, "encoding", "", "how senders write keys: plain or strict (default statsd.encoding of the file)")
	flags.StringVar(&f.logFormat, "log-format", "text", "text or json")
	flags.BoolVar(&f.pprof, "pprof", false, "serve profiles at /debug/pprof/, to readers of the page")
	flags.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.BoolVar(&f.dryRun, "dry-run", false, "check the file, the flags and the servers they name, then exit")
	flags.BoolVar(&f.dryRun, "check", false, "alias of --dry-run, as in other commands")
	_ = flags.MarkHidden("check")
}

// settings are the daemon's settings, merged from flags, variables and file.
type settings struct {
	file     *config.File
	encoding wire.Encoding
	log      *slog.Logger
	ownRedis bool // the URL is from a flag or a variable
}

func (f *aggregatorFlags) settings(w io.Writer) (*settings, error) {
	file, log, err := loadDaemon(w, f.config, f.logFormat, f.logLevel)
	if err != nil {
		return nil, err
	}
	s := &settings{file: file, log: log}
	err = s.override(f)
	return s, err
}

// loadDaemon reads the file of a daemon, and returns it with the daemon's logger, which writes to
// w.
func loadDaemon(w io.Writer, path, logFormat, logLevel string) (*config.File, *slog.Logger, error) {
	if path == "" {
		return nil, nil, usageError(errors.New("--config is missing: it names the file with the rules"))
	}
	log, err := newLogger(w, logFormat, logLevel)
	if err != nil {
		return nil, nil, err
	}
	file, err := loadConfig(w, path)
	return file, log, err
}

// override applies the flags and checks their values. The values of the file have been checked
// already.
func (s *settings) override(f *aggregatorFlags) error {
	a, k, g, d := s.file.Aggregator.WithDefaults(), s.file.Kafka.WithDefaults(), s.file.Graphite.WithDefaults(), s.file.StatsD
	override(&a.Source, f.source)
	if a.Source == config.SourceNone {
		return configError(errors.New("aggregator.source: none: instances send no counts, so no aggregator is needed"))
	}
	override(&a.Name, f.name)
	override(&a.HTTP, f.http)
	override(&k.Topic, f.topic)
	override(&k.Group, f.group)
	s.ownRedis = override(&a.Redis.URL, f.redis)
	a.Pprof = a.Pprof || f.pprof
	errs := []error{checkAddress("http", a.HTTP)}
	var listen, brokers, encoding string
	if override(&listen, f.listen) {
		var err error
		a.Listen, err = parseListen(listen)
		errs = append(errs, err)
	}
	if override(&brokers, f.brokers) {
		k.Brokers = strings.Split(brokers, ",")
		for _, broker := range k.Brokers {
			errs = append(errs, checkAddress("brokers", broker))
		}
	}
	if override(&g.URL, f.graphite) {
		if err := config.CheckGraphiteURL(g.URL); err != nil {
			errs = append(errs, fmt.Errorf("--graphite or HOTPARAM_GRAPHITE: %w", err))
		}
	}
	if override(&encoding, f.encoding) {
		d.Encoding = encoding
	}
	if !slices.Contains(config.Sources, a.Source) {
		errs = append(errs, fmt.Errorf("--source or HOTPARAM_SOURCE %q: want %s", a.Source, strings.Join(config.Sources, " or ")))
	}
	if a.Name != "" && !config.ValidName(a.Name) {
		errs = append(errs, fmt.Errorf("--name or HOTPARAM_NAME %q: want 1 to 64 of A-Z a-z 0-9 . _ -", a.Name))
	}
	if a.Source != config.SourceKafka { // section statsd does not apply to Kafka's senders
		encoding = d.WithDefaults(a).Encoding
	}
	var err error
	if s.encoding, err = wire.ParseEncoding(encoding); err != nil {
		errs = append(errs, fmt.Errorf("--encoding or HOTPARAM_ENCODING: %w", err))
	}
	if err := errors.Join(errs...); err != nil {
		return usageError(err)
	}
	s.file.Aggregator, s.file.Kafka, s.file.Graphite, s.file.StatsD = a, k, g, d
	if err := s.file.Agree(); err != nil {
		return configError(err)
	}
	if err := s.nameless(); err != nil {
		return configError(err)
	}
	return nil
}

// parseListen parses the addresses of a flag or a variable.
func parseListen(list string) ([]string, error) {
	var addresses []string
	for s := range strings.SplitSeq(list, ",") {
		a, err := wire.ParseAddress(s)
		if err != nil {
			return nil, fmt.Errorf("--listen or HOTPARAM_LISTEN: %w", err)
		}
		addresses = append(addresses, a.String())
	}
	return addresses, nil
}

// nameless returns an error if an aggregator shares the keys with others and has no name. Aggregators
// without names would publish as the same owner, and so against each other.
func (s *settings) nameless() error {
	a, several := s.file.Aggregator, len(s.file.StatsD.Addresses)
	if a.Source == config.SourceStatsD && a.Name == "" && !a.Lease && several > 1 {
		return fmt.Errorf("statsd.addresses has %d aggregators that share the keys, and this one has no name: give each its own by --name or HOTPARAM_NAME", several)
	}
	return nil
}

// override sets a value of the file from a flag, unless that is empty, and reports whether it
// did. The flag includes the value of its variable, which [applyVariables] has set.
func override(value *string, flag string) bool {
	if flag != "" {
		*value = flag
	}
	return flag != ""
}

// checkAddress checks an address from a flag or a variable. The addresses of the file have been
// checked already.
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

var passwordOption = regexp.MustCompile(`(password=)[^&]*`)

// redacted returns a Redis URL without its passwords.
func redacted(url string) string {
	url = passwordOption.ReplaceAllString(url, "$1…")
	i := strings.LastIndexByte(url, '@')
	scheme := strings.Index(url, "://")
	if i < 0 || scheme < 0 || i < scheme {
		return url
	}
	return url[:scheme+3] + "…" + url[i:]
}
