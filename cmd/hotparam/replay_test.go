package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/replay"
)

// accessLog returns a log with one search for phone each 100 ms, and one for tree each second.
func accessLog() string {
	var b strings.Builder
	at := time.Date(2017, 6, 30, 0, 0, 0, 0, time.UTC)
	line := func(q string) {
		b.WriteString(`{"time":"` + at.Format(time.RFC3339Nano) + `","method":"GET","uri":"/search?q=` + q + `"}` + "\n")
	}
	for i := range 50 {
		line("phone")
		if i%10 == 0 {
			line("tree")
		}
		at = at.Add(100 * time.Millisecond)
	}
	return b.String()
}

func TestReplay(t *testing.T) {
	log := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(log, []byte(accessLog()+"no line of a log\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(t *testing.T, r result) {
		t.Helper()
		r.exits(t, exitOK)
		var hot []replay.Event
		var summary replay.Summary
		for line := range strings.Lines(r.out) {
			var kind struct{ Event string }
			if err := json.Unmarshal([]byte(line), &kind); err != nil {
				t.Fatalf("%v in %q", err, line)
			}
			switch {
			case summary.Event != "":
				t.Errorf("%q comes behind the summary", line)
			case kind.Event == "summary":
				decodeJSON(t, line, &summary)
			case kind.Event == "hot":
				hot = append(hot, replay.Event{})
				decodeJSON(t, line, &hot[len(hot)-1])
			}
		}
		// The tenth request within a second arrives at 0.9 s.
		if len(hot) != 1 || hot[0].Key != "GET /search?q=phone" || hot[0].Time != "2017-06-30T00:00:00.9Z" || hot[0].Low != 10 {
			t.Errorf("hot: %+v, want phone alone, from its tenth request on", hot)
		}
		if summary.Requests != 55 || summary.Keys != 2 || summary.Hot != 1 || summary.Limited == 0 {
			t.Errorf("summary: %+v, want 55 requests, 2 keys, 1 of them hot, some requests limited", summary)
		}
	}
	flags := []string{"replay", "--by", "q", "--hot", "10/s", "--limit", "2/s"}
	t.Run("json", func(t *testing.T) {
		r := hotparamCommand(t, append(flags, "--json", log)...)
		check(t, r)
		if !strings.Contains(r.err, log+":56: skipped") {
			t.Errorf("stderr does not tell the bad line: %q", r.err)
		}
	})
	t.Run("standard input", func(t *testing.T) {
		check(t, withInput(t, accessLog(), append(flags, "--json", "-")...))
	})
	t.Run("rules of a file", func(t *testing.T) {
		path := write(t, strings.NewReplacer("200/s", "10/s", "50/s", "2/s").Replace(goodRules))
		check(t, hotparamCommand(t, "replay", "--config", path, "--json", log))
	})
	t.Run("text", func(t *testing.T) {
		r := hotparamCommand(t, append(flags, log)...)
		r.exits(t, exitOK)
		if !strings.HasPrefix(r.out, "hot  2017-06-30T00:00:00.9Z") || !strings.Contains(r.out, "\n55 requests in 5s, 1 lines skipped, all in order: 2 keys, 1 of them hot") {
			t.Errorf("stdout:\n%s", r.out)
		}
	})
	t.Run("no log", func(t *testing.T) {
		missing := filepath.Join(t.TempDir(), "none.log")
		hotparamCommand(t, append(flags, missing)...).exits(t, exitFailure, missing)
	})
	t.Run("bad rules", func(t *testing.T) {
		path := write(t, "rulez: []\n")
		hotparamCommand(t, "replay", "--config", path, log).exits(t, exitConfig, path+":1:1")
	})
}
