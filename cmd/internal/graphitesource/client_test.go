package graphitesource

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
)

func goodConfig() Config {
	return Config{Rules: rulesOf(hotRule("r", 100, 10*time.Second)), Publisher: newRecorder(), URL: "http://127.0.0.1:1", Encoding: wire.Strict}
}

// Faults that keep a source from working are reported, with the way to mend them.
func TestCheck(t *testing.T) {
	beat := func(w http.ResponseWriter) {
		now := time.Now().Unix()
		_, _ = fmt.Fprintf(w, `[{"target": "statsd.numStats", "datapoints": [[null, %d], [3, %d]]}]`, now-1, now)
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for _, test := range []struct {
		name    string
		answer  http.HandlerFunc
		change  func(*Config)
		private bool   // TLS
		want    string // part of the error, or empty for none
	}{
		{"all is well", func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" {
				t.Error("a password where none is given")
			}
			if r.URL.Path != "/render" || r.FormValue("from") != "-20s" {
				t.Errorf("asked for %s %v", r.URL.Path, r.Form)
			}
			beat(w)
		}, nil, false, ""},
		{"below a path", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/base/render" {
				w.WriteHeader(404)
				return
			}
			beat(w)
		}, func(c *Config) { c.URL += "/base/" }, false, ""},
		{"compressed", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			zip := gzip.NewWriter(w)
			_, _ = zip.Write([]byte("[]"))
			_ = zip.Close()
		}, nil, false, ""},
		{"a user", func(w http.ResponseWriter, r *http.Request) {
			if user, password, _ := r.BasicAuth(); user != "ada" || password != "p:w" {
				w.WriteHeader(401)
				return
			}
			beat(w)
		}, func(c *Config) { c.User, c.Password = "ada", "p:w" }, false, ""},
		{"a token", func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer secret" {
				w.WriteHeader(401)
				return
			}
			beat(w)
		}, func(c *Config) { c.Token = "secret" }, false, ""},
		{"no password", status(401), nil, false, "neither a user nor a token"},
		{"a wrong password", status(401), func(c *Config) { c.User, c.Password = "ada", "secret" }, false, `user "ada"`},
		{"a wrong token", status(403), func(c *Config) { c.Token = "secret" }, false, "the token"},
		{"overloaded", status(503), nil, false, "503"},
		{"something else", status(404), nil, false, "is the URL that of graphite-web"},
		{"elsewhere", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/render", http.StatusFound)
		}, nil, false, "give the URL that it redirects to"},
		{"a page", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>log in")) }, nil, false, "no JSON as graphite-web writes it"},
		{"a broken answer", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("[{"))
		}, nil, false, "broke"},
		{"late", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, func(c *Config) { c.Timeout = 50 * time.Millisecond }, false, "did not answer within 50ms"},
		{"nobody", nil, func(c *Config) { c.URL = "http://127.0.0.1:1" }, false, "does graphite-web run"},
		{"TLS to a plain port", func(w http.ResponseWriter, _ *http.Request) { beat(w) }, func(c *Config) { c.URL = strings.Replace(c.URL, "http:", "https:", 1) }, false, "give a URL of http"},
		{"an unknown authority", func(w http.ResponseWriter, _ *http.Request) { beat(w) }, nil, true, "give it as tls ca"},
		{"other points", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`[{"target": "statsd.numStats", "datapoints": [[1, 100], [3, 110]]}]`))
		}, nil, false, "10 s apart and not 1 s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := goodConfig()
			if test.answer != nil {
				server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_ = r.ParseForm() // until the body is read, the server does not notice that the client disconnects
					test.answer(w, r)
				}))
				server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
				if test.private {
					server.StartTLS()
				} else {
					server.Start()
				}
				defer server.Close()
				c.URL = server.URL
			}
			if test.change != nil {
				test.change(&c)
			}
			s, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			defer s.client.http.CloseIdleConnections()
			err = s.Check(context.Background())
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("told %v, want %q", err, test.want)
			}
			away := test.name == "a broken answer" || test.name == "late" || test.name == "nobody" || test.name == "overloaded"
			if errors.Is(err, ErrUnreachable) != away {
				t.Errorf("%v: want that Graphite may be away: %v", err, away)
			}
			if err != nil && (strings.Contains(err.Error(), "secret") || !strings.HasPrefix(err.Error(), "graphite source: ")) {
				t.Errorf("told %v", err)
			}
		})
	}
}

func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("[]")) }))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	server.StartTLS()
	defer server.Close()
	c := goodConfig()
	known := x509.NewCertPool()
	known.AddCert(server.Certificate())
	c.URL, c.TLS = server.URL, &tls.Config{RootCAs: known}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.client.http.CloseIdleConnections()
	if err := s.Check(context.Background()); err != nil {
		t.Error(err)
	}
	c.TLS = &tls.Config{RootCAs: known, ServerName: "graphite.test"}
	if s, err = New(c); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(context.Background()); err == nil || !strings.Contains(err.Error(), "server_name") {
		t.Errorf("told %v", err)
	}
}

func TestConfig(t *testing.T) {
	for _, test := range []struct {
		want   string // part of the error, or empty for none
		change func(*Config)
	}{
		{"", func(*Config) {}},
		{"", func(c *Config) { c.Every = "*/2 * * * * *" }},
		{"", func(c *Config) { c.Every = "* * * * *" }},
		{"", func(c *Config) { c.Series, c.Heartbeat = "{name}", NoHeartbeat }},
		{"", func(c *Config) { c.Step, c.Every = 10*time.Second, "@every 10s" }},
		{"", func(c *Config) { c.URL = "https://graphite.test:8443/base/" }},
		{"Config.Every", func(c *Config) { c.Every = "every second" }},
		{"never comes", func(c *Config) { c.Every = "0 0 30 2 *" }},
		{"line break", func(c *Config) { c.Token = "t\n" }},
		{"basic authentication", func(c *Config) { c.User = "a:b" }},
		{`rule "r": a window of 10s`, func(c *Config) { c.Step = 3 * time.Second }},
	} {
		c := goodConfig()
		test.change(&c)
		_, err := New(c)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("told %v, want %q", err, test.want)
		}
	}
	for series, want := range map[string]string{"": "statsd.numStats", "stats.{name}": "statsd.numStats", "stats.counters.{name}.rate": "stats.statsd.numStats"} {
		c := goodConfig()
		c.Series = series
		if got := c.withDefaults().Heartbeat; got != want {
			t.Errorf("heartbeat of %q is %q", series, got)
		}
	}
}

func TestReasons(t *testing.T) {
	for i, name := range Reasons() {
		if got := failReason(i).String(); got != name {
			t.Errorf("%d is %q and %q", i, got, name)
		}
	}
	cause := errors.New("cause")
	if err := failed(silent, cause); !errors.Is(err, cause) || err.Error() != "cause" || len(Reasons()) != int(silent)+1 {
		t.Error(err)
	}
}
