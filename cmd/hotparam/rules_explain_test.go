package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/explain"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

func TestExplainWithoutRedis(t *testing.T) {
	file := write(t, strings.Replace(goodRules, "rules:", "aggregator: {redis: \"redis://"+unreachable(t)+"/0\"}\nrules:", 1))
	var d explain.Document
	for _, test := range []struct {
		name     string
		flags    []string
		decision explain.Decision
		says     string
	}{
		{"asked in vain", []string{"GET", "/search?q=phone"}, explain.Unknown, "Redis cannot be asked"},
		{"not asked", []string{"GET", "/search?q=phone", "--no-redis"}, explain.Unknown, "--no-redis"},
		{"no rule", []string{"GET", "https://shop.example/other"}, explain.Pass, "No rule matches"},
		{"no key", []string{"get", "/search"}, explain.Pass, "has no key"},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := append([]string{"rules", "explain", "--config", file}, test.flags...)
			r := hotparamCommand(t, append(args, "--json")...)
			r.exits(t, exitOK)
			d = explain.Document{}
			decodeJSON(t, r.out, &d)
			if d.Decision != test.decision || !strings.Contains(strings.Join(d.Why, "\n"), test.says) || d.Version == "" {
				t.Errorf("%+v, want %s and %q", d, test.decision, test.says)
			}
			r = hotparamCommand(t, args...)
			r.exits(t, exitOK)
			if !strings.Contains(r.out, "decision  "+string(test.decision)) || !strings.Contains(r.out, test.says) {
				t.Errorf("stdout:\n%s", r.out)
			}
		})
	}
}

func TestExplainUsage(t *testing.T) {
	file := write(t, goodRules)
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"GET", "/x"}, "--config is missing"},
		{[]string{"--config", file, "GET"}, "URL is missing"},
		{[]string{"--config", file, "GET", "search"}, "want a path"},
		{[]string{"--config", file, "GET", "/x", "-H", "nothing"}, "Name: value"},
		{[]string{"--config", file, "GET", "/x", "--client", "me"}, "IP address"},
		{[]string{"--config", file, "GET", "/x", "--from", "http://127.0.0.1:1"}, "choose one"},
		{[]string{"--config", file, "GET", "/x", "-d", "@" + filepath.Join(t.TempDir(), "none")}, "none"},
		{[]string{"--from", "ftp://x", "GET", "/x"}, "--from"},
		{[]string{"--config", file, "--resource", "Search/Find", "phone"}, "PARAM=VALUE"},
		{[]string{"--config", file, "--resource", "Search/Find", "-d", "q=phone"}, "neither a method, a URL, a body"},
	} {
		hotparamCommand(t, append([]string{"rules", "explain"}, test.args...)...).exits(t, exitUsage, test.says)
	}
	hotparamCommand(t, "rules", "explain", "--from", "http://"+unreachable(t), "GET", "/x").exits(t, exitUnreachable, "cannot be asked")
}

// A request is explained in the same words from a file and by a daemon, with the hot keys.
func TestExplainHotKeys(t *testing.T) {
	server := testenv.Redis(t)
	publish(t, server, published.Change{Hot: []published.Hot{{
		Key: rules.Key{Rule: "search-terms", Text: "GET /search?q=phone"}, Low: 212, High: 230, Rate: 212, Since: time.Now(),
		Limit: rules.Rate{N: 50, Per: time.Second}, Burst: 50, Mode: rules.ModeLimit,
	}}})
	path := write(t, strings.Replace(goodRules, "rules:", "aggregator: {redis: \""+server.URL()+"\"}\nrules:", 1))
	client, err := hotkeys.NewClient(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	handler := explain.NewHandler(explain.Source{Client: client, Rules: func() explain.Rules {
		file, err := config.Load(path)
		if err != nil {
			t.Error(err)
		}
		return explain.RulesOf(file, file.Rules)
	}})
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+explain.Path, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer geheim" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	})
	daemon := httptest.NewServer(mux)
	t.Cleanup(daemon.Close)

	hotparamCommand(t, "rules", "explain", "--from", daemon.URL, "GET", "/x").exits(t, exitUnreachable, "--token-file")
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("geheim\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, from := range [][]string{{"--config", path}, {"--from", daemon.URL, "--token-file", token}} {
		for target, hot := range map[string]bool{"/search?q=phone": true, "/search?q=radio": false} {
			r := hotparamCommand(t, append([]string{"rules", "explain", "--json", "GET", target}, from...)...)
			r.exits(t, exitOK)
			var d explain.Document
			decodeJSON(t, r.out, &d)
			if len(d.Keys) != 1 || d.Keys[0].Hot == nil || *d.Keys[0].Hot != hot || (d.Decision == explain.Limit) != hot || (d.Answer != nil) != hot {
				t.Errorf("%s %s: %s", from[0], target, r.out)
			}
		}
		r := hotparamCommand(t, append([]string{"rules", "explain", "GET", "/search?q=phone"}, from...)...)
		r.exits(t, exitOK)
		said = append(said, r.out)
	}
	if said[0] != said[1] || !strings.Contains(said[0], "hot, 212.0/s now") || !strings.Contains(said[0], "429 Too Many Requests") {
		t.Errorf("by the file:\n%sby the daemon:\n%s", said[0], said[1])
	}
	broken := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(broken.Close)
	hotparamCommand(t, "rules", "explain", "--from", broken.URL, "GET", "/x").exits(t, exitUnreachable, "aggregator.http")
}
