package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/statsdsink"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/middleware"
)

// fakeGraphite answers like Graphite's render API, with one hot key.
type fakeGraphite struct {
	*httptest.Server
	status atomic.Int64 // status sent instead of an answer, or 0 to answer
}

const phoneCounter = "shop.search-terms.hot_param.GET_20_2Fsearch_3Fq=phone"

func newFakeGraphite(t *testing.T) *fakeGraphite {
	t.Helper()
	g := &fakeGraphite{}
	g.Server = httptest.NewServer(http.HandlerFunc(g.render))
	t.Cleanup(g.Close)
	return g
}

func (g *fakeGraphite) render(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	switch {
	case g.status.Load() != 0:
		w.WriteHeader(int(g.status.Load()))
		return
	case user != "shop" || password != "geheim":
		w.WriteHeader(http.StatusUnauthorized)
		return
	case r.URL.Path != "/base/render":
		w.WriteHeader(http.StatusNotFound)
		return
	}
	type series struct {
		Target     string       `json:"target"`
		Datapoints [][2]float64 `json:"datapoints"`
	}
	now := time.Now().Unix()
	from := now - 60
	switch text := r.FormValue("from"); {
	case strings.HasPrefix(text, "-"):
		if d, err := time.ParseDuration(strings.TrimSuffix(text, "econds")); err == nil {
			from = now + int64(d.Seconds())
		}
	default:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			from = n
		}
	}
	of := func(name string, value float64) series {
		s := series{Target: name}
		for at := from + 1; at <= now; at++ {
			s.Datapoints = append(s.Datapoints, [2]float64{value, float64(at)})
		}
		return s
	}
	all := []series{}
	for _, target := range r.Form["target"] {
		switch {
		case strings.Contains(target, "numStats"):
			all = append(all, of(target, 3))
		case strings.HasPrefix(target, "maximumAbove(stats_counts.shop.search-terms.hot_param.*,"):
			all = append(all, of("stats_counts."+phoneCounter, 300))
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(all) // the client may have gone
}

// graphiteRules returns a file with a user whose password is in another file.
func graphiteRules(t *testing.T, more string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "graphite.password")
	if err := os.WriteFile(path, []byte("geheim\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return write(t, goodRules+"aggregator: {source: graphite, http: '127.0.0.1:0'}\ngraphite: {user: shop, password_file: "+path+more+"}\n")
}

// If a daemon cannot read from Graphite, it reports the cause and the remedy within seconds. The
// exit code distinguishes wrong settings from an unreachable server.
func TestAggregatorExplainsGraphite(t *testing.T) {
	path := graphiteRules(t, ", timeout: 500ms")
	g := newFakeGraphite(t)
	t.Run("nobody there", func(t *testing.T) {
		nobody := "http://" + unreachable(t)
		hotparamCommand(t, "aggregator", "--config", path, "--graphite", nobody).exits(t, exitUnreachable, nobody, "is the address right")
	})
	t.Run("another path", func(t *testing.T) {
		hotparamCommand(t, "aggregator", "--config", path, "--graphite", g.URL).exits(t, exitConfig, g.URL+"/render", "404")
	})
	t.Run("another user", func(t *testing.T) {
		t.Setenv("GRAPHITE_PASSWORD", "geraten")
		path := write(t, goodRules+"aggregator: {source: graphite}\ngraphite: {user: shop, password_env: GRAPHITE_PASSWORD}\n")
		r := hotparamCommand(t, "aggregator", "--config", path, "--graphite", g.URL+"/base")
		r.exits(t, exitConfig, "401", `"shop"`)
		if strings.Contains(r.err, "geraten") {
			t.Errorf("stderr tells the password: %q", r.err)
		}
	})
	t.Run("not there yet", func(t *testing.T) {
		g.status.Store(http.StatusBadGateway)
		defer g.status.Store(0)
		hotparamCommand(t, "aggregator", "--config", path, "--graphite", g.URL+"/base").exits(t, exitUnreachable, "502")
	})
	t.Run("no password", func(t *testing.T) {
		path := write(t, goodRules+"aggregator: {source: graphite}\ngraphite: {user: u, password_file: /nowhere/graphite}\n")
		hotparamCommand(t, "aggregator", "--config", path).exits(t, exitConfig, "graphite.password_file", "/nowhere/graphite")
		path = write(t, goodRules+"aggregator: {source: graphite}\ngraphite: {token_env: HOTPARAM_NO_SUCH_TOKEN}\n")
		hotparamCommand(t, "aggregator", "--config", path).exits(t, exitConfig, "graphite.token", "HOTPARAM_NO_SUCH_TOKEN")
	})
	t.Run("TLS", func(t *testing.T) {
		secure := httptest.NewUnstartedServer(http.HandlerFunc(g.render))
		secure.Config.ErrorLog = log.New(io.Discard, "", 0)
		secure.StartTLS()
		defer secure.Close()
		rules := goodRules + "aggregator: {source: graphite}\ngraphite: {url: '" + secure.URL + "'"
		hotparamCommand(t, "aggregator", "--config", write(t, rules+"}\n")).exits(t, exitConfig, secure.URL, "authority")
		ca := write(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})))
		hotparamCommand(t, "aggregator", "--config", write(t, rules+", tls: {ca: "+ca+"}}\n")).exits(t, exitConfig, "401")
	})
	t.Run("no authority", func(t *testing.T) {
		path := write(t, goodRules+"aggregator: {source: graphite}\ngraphite: {url: 'https://h', tls: {ca: /nowhere/ca.pem}}\n")
		hotparamCommand(t, "aggregator", "--config", path).exits(t, exitConfig, "graphite.tls: ca", "/nowhere/ca.pem")
	})
}

func TestAggregatorGraphiteSettings(t *testing.T) {
	path := write(t, goodRules)
	t.Setenv("HOTPARAM_REDIS", "redis://"+unreachable(t)) // valid settings are reported before Redis is asked
	t.Run("flag before variable before file", func(t *testing.T) {
		t.Setenv("HOTPARAM_SOURCE", "graphite")
		t.Setenv("HOTPARAM_GRAPHITE", "http://g1")
		hotparamCommand(t, "aggregator", "--config", path, "--dry-run").exits(t, exitUnreachable, "Graphite at http://g1, asked @every 1s for stats_counts.{name} in steps of 1s")
		hotparamCommand(t, "aggregator", "--config", path, "--dry-run", "--graphite", "https://g2/base").exits(t, exitUnreachable, "Graphite at https://g2/base, ")
		hotparamCommand(t, "aggregator", "--config", path, "--dry-run", "--source", "statsd").exits(t, exitUnreachable, "StatsD 127.0.0.1:8125")
	})
	t.Run("listen", func(t *testing.T) {
		t.Setenv("HOTPARAM_ENCODING", "strict")
		hotparamCommand(t, "aggregator", "--config", path, "--dry-run", "--listen", "udp://:1,tcp://:1,unix:///run/s").exits(t, exitUnreachable, "StatsD :1, tcp://:1, unix:///run/s, keys strict")
	})
	for _, test := range []struct {
		name, file string
		flags      []string
		code       int
		says       []string
	}{
		{"no URL", "", []string{"--graphite", "g:8080"}, exitUsage, []string{"--graphite", "http://"}},
		{"a password", "", []string{"--graphite", "http://u:p@g"}, exitUsage, []string{"--graphite", "a password"}},
		{"no address", "", []string{"--listen", ":1,tcp://h"}, exitUsage, []string{"--listen", `"tcp://h"`, "host:port"}},
		{"plain keys", "", []string{"--source", "graphite", "--encoding", "plain"}, exitConfig, []string{"statsd.encoding", "strict"}},
		{"windows", "rules: [{id: a, match: {route: '*'}, hot: 3/1500ms}]\n", []string{"--source", "graphite"}, exitConfig, []string{"graphite.step", "1.5s of rule a"}},
		{"two StatsD", "statsd: {addresses: ['a:1', 'b:1']}\n", []string{"--source", "graphite"}, exitUnreachable, nil},
		{"a lease", "aggregator: {source: graphite, lease: true}\n", nil, exitUnreachable, nil},
		{"a lease and a name", "aggregator: {source: graphite, lease: true}\n", []string{"--name", "a"}, exitConfig, []string{"aggregator.lease", "remove name"}},
		{"readers", "aggregator: {readers: 3}\n", nil, exitUnreachable, []string{"StatsD 127.0.0.1:8125 by 3 readers"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := test.file
			if !strings.Contains(text, "rules:") {
				text += goodRules
			}
			args := append([]string{"aggregator", "--dry-run", "--config", write(t, text)}, test.flags...)
			hotparamCommand(t, args...).exits(t, test.code, test.says...)
		})
	}
}

// A daemon finds hot keys through Graphite, and reports when Graphite does not answer.
func TestAggregatorByGraphite(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	redis, g := testenv.Redis(t), newFakeGraphite(t)
	args := []string{"--config", graphiteRules(t, ""), "--graphite", g.URL + "/base", "--redis", redis.URL()}
	d := startDaemon(t, args...)
	eventually(t, d.is("ready"))
	client, err := hotkeys.NewClient(redis.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	eventually(t, func() error {
		hot, err := hotkeys.List(t.Context(), client, "shop")
		if err == nil && (len(hot) != 1 || hot[0].Key.Text != "GET /search?q=phone" || hot[0].Owner != "graphite") {
			err = fmt.Errorf("hot: %+v", hot)
		}
		return err
	})
	eventually(t, d.serves("hotparam_published_keys 1", "hotparam_hot_keys 1", "hotparam_graphite_frozen 0", `hotparam_graphite_failures_total{reason="status"} 0`))
	g.status.Store(http.StatusInternalServerError)
	eventually(t, func() error {
		if words := d.get("/-/ready"); !strings.HasPrefix(words, "not ready: time stands still: ") || !strings.Contains(words, "500") {
			return fmt.Errorf("/-/ready: %q", words)
		}
		return nil
	})
	eventually(t, d.serves("hotparam_graphite_frozen 1"))
	g.status.Store(0)
	eventually(t, d.is("ready"))
	if code := d.end(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

const graphiteConfig = "../../deploy/hotparam-graphite.yaml"

func TestGraphiteRulesLint(t *testing.T) {
	hotparamCommand(t, "rules", "lint", graphiteConfig).exits(t, exitOK,
		"counts: StatsD to 127.0.0.1:8125, keys strict, no meta lines; Graphite at http://127.0.0.1:8080, asked @every 1s for stats_counts.{name} in steps of 1s",
		"params: * by all parameters: hot at 200/s")
}

// lineSink keeps the packets of a sink.
type lineSink struct{ packets []string }

func (l *lineSink) Send(p []byte) (int, error) {
	l.packets = append(l.packets, string(p))
	return len(p), nil
}

func (l *lineSink) Close() error { return nil }

// The request of the article is counted as its file describes.
func TestGraphiteRulesCount(t *testing.T) {
	f, err := config.Load(graphiteConfig)
	if err != nil {
		t.Fatal(err)
	}
	s := f.StatsD.WithDefaults(f.Aggregator)
	out := &lineSink{}
	sink, err := statsdsink.New(statsdsink.Config{Rules: f.Rules, Sender: out, Strict: s.Encoding == wire.Strict.String(), NoMeta: !*s.Meta})
	if err != nil {
		t.Fatal(err)
	}
	counts, err := collector.New(collector.Config{Sink: sink, Rules: f.Rules})
	if err != nil {
		t.Fatal(err)
	}
	guard, err := middleware.New(f.Rules, counts)
	if err != nil {
		t.Fatal(err)
	}
	handler := guard.Handler(http.NotFoundHandler())
	for _, url := range []string{"/?q=1&b=2", "/?b=2&q=1"} {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, url, http.NoBody))
	}
	counts.Flush(t.Context(), time.Now())
	text, err := os.ReadFile(graphiteConfig)
	if err != nil {
		t.Fatal(err)
	}
	const line = "shop.hot_param.b=2_26q=1:%d|c"
	if got := strings.Join(out.packets, ";"); strings.TrimSpace(got) != fmt.Sprintf(line, 2) {
		t.Errorf("packets %q, want one line of 2", got)
	}
	if !strings.Contains(string(text), "#   "+fmt.Sprintf(line, 1)+"\n") {
		t.Errorf("%s does not show the line", graphiteConfig)
	}
}
