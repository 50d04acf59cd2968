package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/internal/demo/data"
	"github.com/hotparam/hotparam/internal/replay"
)

// The proposal is a rules file that lint accepts and that a replay confirms.
func TestSuggest(t *testing.T) {
	r := withInput(t, string(data.EDGAR), "replay", "--suggest", "12/day", "-")
	r.exits(t, exitOK)
	for _, want := range []string{"# Rules that hotparam replay --suggest 12/day proposes", "# 9,925 requests", "less than a day", "# GET /Archives/edgar/data  cik", "limit: 5/s"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is not in\n%s", want, r.out)
		}
	}
	rules := filepath.Join(t.TempDir(), "hotparam.yaml")
	if err := os.WriteFile(rules, []byte(r.out), 0o600); err != nil {
		t.Fatal(err)
	}
	hotparamCommand(t, "rules", "lint", rules).exits(t, exitOK, "good, 3 rules")
	again := withInput(t, string(data.EDGAR), "replay", "--config", rules, "--json", "-")
	again.exits(t, exitOK)
	lines := strings.Split(strings.TrimSpace(again.out), "\n")
	var summary replay.Summary
	decodeJSON(t, lines[len(lines)-1], &summary)
	if !strings.Contains(r.out, "makes "+strconv.FormatInt(summary.Hot, 10)+" keys hot") || summary.Hot < 9 || summary.Hot > 15 {
		t.Errorf("%d keys are hot\n%s", summary.Hot, r.out)
	}

	r = withInput(t, string(data.EDGAR), "replay", "--suggest", "12", "--json", "-")
	r.exits(t, exitOK)
	lines = strings.Split(strings.TrimSpace(r.out), "\n")
	var s suggestion
	decodeJSON(t, lines[len(lines)-1], &s)
	if s.Event != "suggestion" || int64(s.Hot) != summary.Hot || !strings.Contains(s.Rules, "by: [\"cik\"]") || len(lines) != 4 {
		t.Errorf("%+v", s)
	}
	var p struct {
		Event, Route, Parameter, Threshold string
		Top                                float64 `json:"top_share"`
	}
	if err := json.Unmarshal([]byte(lines[0]), &p); err != nil || p.Event != "parameter" || p.Route != "GET /Archives/edgar/data" || p.Threshold == "" || p.Top <= 0 {
		t.Errorf("%v, %+v", err, p)
	}
}

func TestSuggestSaysWhyNot(t *testing.T) {
	r := withInput(t, accessLog(), "replay", "--suggest", "10/day", "-")
	r.exits(t, exitOK, "nothing to propose: the log is too short")
	if strings.Contains(r.out, "rules:") {
		t.Errorf("%s", r.out)
	}
	withInput(t, `{"time":1,"method":"GET","uri":"/"}`, "replay", "--suggest", "10/day", "-").exits(t, exitOK, "no request has parameters")
	for _, wrong := range []string{"0", "-1/day", "ten", "10/hour", "NaN", "Inf"} {
		withInput(t, "", "replay", "--suggest="+wrong, "-").exits(t, exitUsage, "--suggest")
	}
	withInput(t, "", "replay", "--suggest", "10/day", "--by", "q", "-").exits(t, exitUsage, "does not go with --by")
	withInput(t, "", "replay", "--suggest", "10/day", "-").exits(t, exitFailure, "it is empty")
}
