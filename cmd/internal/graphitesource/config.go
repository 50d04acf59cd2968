package graphitesource

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/baseline"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// Config configures a [Source]. Rules, Publisher and URL are required. Package config has checked the
// values of a file.
type Config struct {
	Rules     *rules.Rules
	Publisher aggregator.Publisher
	// URL is the base URL of graphite-web, for example http://127.0.0.1:8080 or
	// https://graphite.example/base. Requests go to {URL}/render.
	URL string
	// Every is the schedule in the syntax of robfig/cron: "@every 5s", or five fields with an
	// optional field for seconds before them. Empty means [DefaultEvery].
	Every string
	// Offset delays each request, since StatsD flushes at whole seconds and its points appear a
	// little later. Zero means [DefaultOffset].
	Offset time.Duration
	// Series is the name that StatsD gives to the series of a counter, with {name} for the
	// counter's name. Empty means [DefaultSeries], which is StatsD's legacyNamespace. Without
	// legacyNamespace it is "stats.counters.{name}.count".
	Series string
	// Rate reports whether the series are counts per second. StatsD writes these to
	// "stats.{name}", or without legacyNamespace to "stats.counters.{name}.rate".
	Rate bool
	// Heartbeat is a series that StatsD writes at each flush, whatever it counted, so that its
	// newest point shows which counts are complete. Empty means StatsD's own series in the same
	// namespace as Series, "statsd.numStats" or "stats.statsd.numStats". With [NoHeartbeat] the
	// clock of Graphite's machine is used instead.
	Heartbeat string
	// Step is StatsD's flushInterval, in whole seconds. Graphite must keep points at this
	// interval. Zero means one second.
	Step time.Duration
	// Encoding is the encoding of the senders' keys. Use [wire.Strict], unless nothing between
	// them and Graphite changes names.
	Encoding wire.Encoding
	// Canonical reports whether the keys of all series are canonical, as those of instances are.
	Canonical bool
	// Days is the baseline for jumps over days. A nil Days compares with the recent past.
	Days *baseline.Days
	// OnTops is passed to the detector as [aggregator.DetectorConfig.OnTops].
	OnTops func([]aggregator.Tops)
	// Memory is the size of the windows in bytes. Zero means [aggregator.DefaultMemory].
	Memory int64
	// Timeout bounds one request. Zero means [DefaultTimeout].
	Timeout time.Duration
	// User and Password are sent by basic authentication, Token as a bearer token.
	User, Password, Token string
	// TLS is used for an https URL. A nil TLS trusts the system's authorities.
	TLS *tls.Config
	// Log logs one line per event and outage. A nil Log disables it.
	Log *slog.Logger
}

// Defaults of a [Config].
const (
	DefaultEvery   = "@every 1s"
	DefaultOffset  = 250 * time.Millisecond
	DefaultSeries  = "stats_counts.{name}"
	DefaultTimeout = 10 * time.Second
)

// NoHeartbeat is the Heartbeat for a StatsD that writes none.
const NoHeartbeat = "none"

func (c Config) withDefaults() Config {
	c.Every = cmp.Or(c.Every, DefaultEvery)
	c.Series = cmp.Or(c.Series, DefaultSeries)
	if c.Heartbeat == "" {
		c.Heartbeat = "statsd.numStats"
		if strings.HasPrefix(c.Series, "stats.counters.") {
			c.Heartbeat = "stats." + c.Heartbeat
		}
	}
	c.Offset = cmp.Or(c.Offset, DefaultOffset)
	c.Step = cmp.Or(c.Step, time.Second)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Memory = cmp.Or(c.Memory, aggregator.DefaultMemory)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// checkLogin returns an error for credentials that cannot be sent. They may come from files.
func (c *Config) checkLogin() error {
	switch {
	case strings.ContainsAny(c.Token+c.User+c.Password, "\r\n\x00"):
		return errors.New("graphite source: the user, the password or the token has a line break or a NUL: does its file end with one?")
	case strings.Contains(c.User, ":"):
		return errors.New("graphite source: a user's name with \":\" cannot be sent by basic authentication")
	}
	return nil
}

// checkWindows checks that windows are whole multiples of the step. A file whose rules are put in
// force while running may have another step.
func (c *Config) checkWindows() error {
	for i := range c.Rules.Rules {
		rule := &c.Rules.Rules[i]
		for _, t := range rule.Hot {
			if t.Rate.Per%c.Step != 0 {
				return fmt.Errorf("graphite source: rule %q: a window of %v is not a whole multiple of StatsD's flush interval, %v: it cannot be counted from such points", rule.ID, t.Rate.Per, c.Step)
			}
		}
	}
	return nil
}

// parseEvery parses the job's schedule.
func (c *Config) parseEvery() (cron.Schedule, error) {
	parser := cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
	s, err := parser.Parse(c.Every)
	if err != nil {
		return nil, fmt.Errorf("graphite source: Config.Every is %q, must be as robfig/cron writes it, for example %q: %w", c.Every, DefaultEvery, err)
	}
	return delayed{s, c.Offset}, nil
}

// delayed is a schedule that is later by a fixed time.
type delayed struct {
	cron.Schedule
	delay time.Duration
}

// Next implements [cron.Schedule].
func (d delayed) Next(t time.Time) time.Time {
	next := d.Schedule.Next(t.Add(-d.delay))
	if next.IsZero() { // never
		return next
	}
	return next.Add(d.delay)
}
