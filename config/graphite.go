package config

import (
	"cmp"
	"errors"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/hotparam/hotparam/kafka"
)

// Graphite holds the settings for counts that a StatsD server has written to Graphite,
// section "graphite:" of the file. Settings that the file lacks are zero, which the source
// replaces by its defaults; [Graphite.WithDefaults] fills in the ones that other packages need.
type Graphite struct {
	// URL is Graphite's URL above render: http:// or https://.
	URL string
	// Every is the schedule of the queries, a spec of robfig/cron.
	Every string
	// Offset is the delay of a query after these instants.
	Offset time.Duration
	// Series is the name of a counter's series, with {name} in it.
	Series string
	// Rate means that values are per second.
	Rate bool
	// Heartbeat is a series that the StatsD server writes with each flush, or "none" if
	// there is none.
	Heartbeat string
	// Step is the flush interval of the StatsD server, which is Graphite's finest retention.
	Step time.Duration
	// Timeout bounds a request.
	Timeout time.Duration

	// User and a password, or a token, are the credentials for Graphite.
	User, PasswordFile, PasswordEnv string
	TokenFile, TokenEnv             string
	// TLS is used with https://. A nil TLS means the system's authorities.
	TLS *kafka.TLS
}

// settings returns the fields of the section.
func (g *Graphite) settings() settings {
	return settings{
		{"url", unshownURL(&g.URL, formOf(schema{"type": "string", "pattern": "^[hH][tT][tT][pP][sS]?://"}),
			"for example http://graphite.example:8080; user, password_file and token_file are for the log-in", CheckGraphiteURL), "http://127.0.0.1:8080", "Base URL, without /render"},
		{"every", as(&g.Every, schemaText, (*decoder).schedule), "", `When it is asked: "@every 1s", or a cron spec`},
		{"offset", span(&g.Offset, "250ms", minOffset, maxOffset), "", "How long after these instants"},
		{"series", as(&g.Series, schemaForm(`\{name\}`), func(d *decoder, n *fileNode, what string) string {
			return d.series(n, what, 1, "stats_counts.{name}")
		}), "", "Name of a counter's series, with {name} in it"},
		{"rate", flag(&g.Rate), "", "Values are per second"},
		{"heartbeat", as(&g.Heartbeat, schemaText, func(d *decoder, n *fileNode, what string) string {
			return d.series(n, what, 0, "statsd.numStats, or none")
		}), "", "A series that the StatsD writes with each flush, or none"},
		{"step", span(&g.Step, "10s", minStep, maxStep), "1s", "How often the StatsD flushes"},
		{"timeout", span(&g.Timeout, "5s", minTimeout, maxTimeout), "", "Bounds a request"},
		{"user", word(&g.User), "", ""},
		{"password_file", word(&g.PasswordFile), "", ""},
		{"password_env", variable(&g.PasswordEnv), "", ""},
		{"token_file", word(&g.TokenFile), "", ""},
		{"token_env", variable(&g.TokenEnv), "", ""},
		{"tls", as(&g.TLS, ref("tls"), (*decoder).tls), "", ""},
	}
}

// WithDefaults returns the settings with defaults for the URL and the step.
func (g Graphite) WithDefaults() Graphite {
	g.settings().setDefaults()
	return g
}

// Bounds for a job that runs about once a second.
const (
	minOffset, maxOffset = time.Millisecond, 30 * time.Second
	minStep, maxStep     = time.Second, time.Minute
)

func (g *Graphite) check(d *decoder, _ *fileNode, v values) {
	if g.Step%time.Second != 0 {
		d.reject(v.get("step"), "Graphite knows no shorter time", "graphite.step %v: want whole seconds", g.Step)
	}
	if n := v.get("tls"); n != nil && strings.HasPrefix(g.URL, "http://") {
		d.reject(n, "want url: https://…, or no tls", "graphite.tls: the url asks for no TLS")
	}
	d.graphiteUser(v)
}

// CheckGraphiteURL returns an error if s cannot be the URL of a Graphite. The error does not
// contain s.
func CheckGraphiteURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return errors.New("want a URL that begins with http:// or https://")
	case u.User != nil:
		return errors.New("a user and a password do not belong in it")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("want the base URL, without /render, ? and #")
	}
	return nil
}

// schedule reads the schedule of a job.
func (d *decoder) schedule(n *fileNode, what string) string {
	s, ok := d.scalar(n, what)
	if !ok {
		return ""
	}
	if err := checkSchedule(s); err != nil {
		d.reject(n, `for example "@every 1s", or "*/2 * * * * *" with seconds in front`, "%s %s: %v", what, quote(s), err)
	}
	return s
}

var schedules = cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

func checkSchedule(s string) error {
	if strings.HasPrefix(s, "TZ=") || strings.HasPrefix(s, "CRON_TZ=") {
		return errors.New("a job that runs all day takes no time zone")
	}
	if every, found := strings.CutPrefix(s, "@every "); found {
		if t, err := time.ParseDuration(every); err == nil && t < time.Second {
			return errors.New("want at least 1s")
		}
	}
	_, err := schedules.Parse(s)
	return err
}

// seriesName matches the names that StatsD writes, with names in braces.
var seriesName = regexp.MustCompile(`^[A-Za-z0-9_{}-]+(\.[A-Za-z0-9_{}-]+)*$`)

// series reads the name of a series with the given number of {name} in it.
func (d *decoder) series(n *fileNode, what string, names int, example string) string {
	s, ok := d.scalar(n, what)
	switch {
	case !ok:
	case !seriesName.MatchString(s) || strings.ContainsAny(strings.ReplaceAll(s, "{name}", ""), "{}"):
		d.reject(n, "for example "+example, "%s %s: want words of A-Z a-z 0-9 _ - with dots between", what, quote(s))
	case strings.Count(s, "{name}") != names && names == 0:
		d.reject(n, "for example "+example, "%s %s: it is one series, and has no {name}", what, quote(s))
	case strings.Count(s, "{name}") != names:
		d.reject(n, "for example "+example, "%s %s: want {name} in it, once, for the counter's name", what, quote(s))
	}
	return s
}

// graphiteUser checks the credentials for Graphite: a user with a password, or a token.
func (d *decoder) graphiteUser(v values) {
	user := v.get("user")
	password := cmp.Or(v.get("password_file"), v.get("password_env"))
	token := cmp.Or(v.get("token_file"), v.get("token_env"))
	switch {
	case token != nil && cmp.Or(user, password) != nil:
		d.report(token.pos, "keep one of them", "graphite: a token and a user are both there")
	case user != nil && password == nil:
		d.report(user.pos, "add password_file or password_env", "graphite.user is there without a password")
	case password != nil && user == nil:
		d.report(password.pos, "add user", "graphite: a password is there without user")
	}
}
