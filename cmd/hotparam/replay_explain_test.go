package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/cmd/internal/replay"
)

func TestReplayExplain(t *testing.T) {
	log := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(log, []byte(accessLog()), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"replay", "--by", "q", "--hot", "10/s", "--limit", "2/s"}
	t.Run("hot", func(t *testing.T) {
		r := hotparamCommand(t, append(flags, "--explain", "GET /search?q=phone", log)...)
		r.exits(t, exitOK)
		for _, want := range []string{
			"GET /search?q=phone\nreplay: * by q: hot at 10/s (cool below 8, for 5s, after 10s at the earliest); limit 2/s, burst 2, over all instances (each request asks Redis: the rate does not bring each a permit in 50ms)\n",
			"Counted 50 from 00:00:00.000 to 00:00:04.900 UTC; listed once, for 4s in all;",
			"  00:00:00.900  hot   10 within 1s reached 10; held until 00:00:10.9\n",
			"  00:00:00.000        1       1  ███▏                            ┊\n",
			"  00:00:00.900        1      10  ████████████████████████████████  hot\n",
		} {
			if !strings.Contains(r.out, want) {
				t.Errorf("stdout lacks %q:\n%s", want, r.out)
			}
		}
		if lines := strings.Count(r.out, "\n"); lines > 60 {
			t.Errorf("%d lines", lines)
		}
	})
	t.Run("with its rule, never hot", func(t *testing.T) {
		r := hotparamCommand(t, append(flags, "--explain", "replay GET /search?q=tree", log)...)
		r.exits(t, exitOK)
		if !strings.Contains(r.out, "Counted 5 from") || !strings.Contains(r.out, "with 1 of the required 10 within 1s") {
			t.Errorf("stdout:\n%s", r.out)
		}
	})
	t.Run("json", func(t *testing.T) {
		r := hotparamCommand(t, append(flags, "--json", "--explain", "GET /search?q=phone", log)...)
		r.exits(t, exitOK)
		var x replay.Explanation
		decodeJSON(t, r.out, &x)
		if x.Event != "explanation" || x.Counted != 50 || x.Hot != 1 || len(x.Thresholds) != 1 || len(x.Thresholds[0].Panes) != 50 {
			t.Errorf("%+v", x)
		}
	})
	t.Run("no such key", func(t *testing.T) {
		hotparamCommand(t, append(flags, "--explain", "GET /search?q=fone", log)...).
			exits(t, exitFailure, "no request had the key GET /search?q=fone", "nearest", "\n  GET /search?q=phone")
	})
	t.Run("both", func(t *testing.T) {
		hotparamCommand(t, append(flags, "--explain", "k", "--what-if", "f", log)...).exits(t, exitUsage, "do not go together")
	})
}

func TestReplayWhatIf(t *testing.T) {
	log := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(log, []byte(accessLog()), 0o600); err != nil {
		t.Fatal(err)
	}
	strict := write(t, strings.NewReplacer("200/s", "1/s", "50/s", "1/s").Replace(goodRules))
	flags := []string{"replay", "--by", "q", "--hot", "10/s", "--limit", "2/s", "--what-if", strict}
	t.Run("json", func(t *testing.T) {
		r := hotparamCommand(t, append(flags, "--json", log)...)
		r.exits(t, exitOK)
		var sum replay.Comparison
		keys := map[string]replay.Difference{}
		for line := range strings.Lines(r.out) {
			var d replay.Difference
			if err := json.Unmarshal([]byte(line), &d); err == nil && d.Event == "key" {
				keys[d.Rule+" "+d.Key] = d
				continue
			}
			decodeJSON(t, line, &sum)
		}
		if sum.Event != "summary" || sum.Requests != 55 || sum.Changed != len(keys) || sum.Before.Hot != 1 || sum.After.Hot != 2 {
			t.Errorf("summary %+v", sum)
		}
		if d := keys["replay GET /search?q=phone"]; !d.Changed || d.Before.Limited != sum.Before.Limited || d.Before.Limited == 0 || d.After.Hot != 0 {
			t.Errorf("phone: %+v", d)
		}
	})
	t.Run("text", func(t *testing.T) {
		r := hotparamCommand(t, append(flags, log)...)
		r.exits(t, exitOK)
		if !strings.HasPrefix(r.out, "LIMITED ") || !strings.Contains(r.out, "\n55 requests in 5s: 3 keys different, 0 the same\nbefore  1 hot, ") {
			t.Errorf("stdout:\n%s", r.out)
		}
	})
	t.Run("standard input", func(t *testing.T) {
		withInput(t, accessLog(), append(flags, "-")...).exits(t, exitUsage, "standard input", "file")
	})
	t.Run("bad rules", func(t *testing.T) {
		bad := write(t, "rulez: []\n")
		hotparamCommand(t, "replay", "--by", "q", "--hot", "10/s", "--what-if", bad, log).exits(t, exitConfig, fmt.Sprint(bad, ":1:1"))
	})
}
