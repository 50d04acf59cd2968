package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/cmd/internal/demo/data"
	"github.com/hotparam/hotparam/cmd/internal/replay"
)

// The proposal starts with a warning if its limit would refuse many requests.
func TestSuggestCautions(t *testing.T) {
	var log strings.Builder
	for i := range 6000 {
		value := strconv.Itoa(i)
		if i >= 3000 && i < 3600 {
			value = "concert"
		}
		fmt.Fprintf(&log, `{"time":%.2f,"method":"GET","uri":"/a?q=%s"}`+"\n", 1500000000+float64(i)/100, value)
	}
	r := withInput(t, log.String(), "replay", "--suggest", "1/day", "-")
	r.exits(t, exitOK)
	caution, measured := strings.Index(r.out, "# CAUTION: the limit on q of GET /a would have refused "), strings.Index(r.out, "# Replayed")
	if caution < 0 || caution > measured {
		t.Errorf("%s", r.out)
	}
}

// The proposal is a rules file that lint accepts and that a replay confirms.
func TestSuggest(t *testing.T) {
	r := withInput(t, string(data.EDGAR), "replay", "--suggest", "12/day", "-")
	r.exits(t, exitOK)
	for _, want := range []string{"# Rules that hotparam replay --suggest 12/day proposes", "# 9,925 requests", "less than a day", "# GET /Archives/edgar/data  cik", "on_limit: shadow", "would have refused", `{values: {"doc": "-index.htm"}, action: allow}`} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is not in\n%s", want, r.out)
		}
	}
	rules := filepath.Join(t.TempDir(), "hotparam.yaml")
	if err := os.WriteFile(rules, []byte(r.out), 0o600); err != nil {
		t.Fatal(err)
	}
	hotparamCommand(t, "rules", "lint", rules).exits(t, exitOK, "good, ")
	again := withInput(t, string(data.EDGAR), "replay", "--config", rules, "--json", "-")
	again.exits(t, exitOK)
	lines := strings.Split(strings.TrimSpace(again.out), "\n")
	var summary replay.Summary
	decodeJSON(t, lines[len(lines)-1], &summary)
	if !strings.Contains(r.out, "would have refused "+strconv.FormatInt(summary.Limited, 10)+" requests") {
		t.Errorf("%d requests are refused\n%s", summary.Limited, r.out)
	}
	if !strings.Contains(r.out, "makes "+strconv.FormatInt(summary.Hot, 10)+" keys hot") || summary.Hot < 9 || summary.Hot > 15 {
		t.Errorf("%d keys are hot\n%s", summary.Hot, r.out)
	}

	r = withInput(t, string(data.EDGAR), "replay", "--suggest", "12", "--json", "-")
	r.exits(t, exitOK)
	lines = strings.Split(strings.TrimSpace(r.out), "\n")
	var s suggestion
	decodeJSON(t, lines[len(lines)-1], &s)
	if s.Event != "suggestion" || int64(s.Hot) != summary.Hot || s.Refused != summary.Limited || !strings.Contains(s.Rules, "by: [\"cik\"]") || len(lines) != 4 {
		t.Errorf("%+v", s)
	}
	var p struct {
		Event, Route, Parameter, Threshold string
		Top                                float64 `json:"top_share"`
	}
	if err := json.Unmarshal([]byte(lines[1]), &p); err != nil || p.Event != "parameter" || p.Route != "GET /Archives/edgar/data" || p.Threshold == "" || p.Top <= 0 {
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

// With durations in the log, what the routes served is shown. The rules by that are comments, and
// without their marks they are a part of the file.
func TestSuggestShowsWhatRoutesServed(t *testing.T) {
	var log strings.Builder
	for i := range 12_100 {
		fmt.Fprintf(&log, `{"time":%.2f,"method":"GET","uri":"/a?q=%d","duration":0.004}`+"\n", 1500000000+float64(i)/20, i%3)
	}
	r := withInput(t, log.String(), "replay", "--suggest", "1/day", "-")
	r.exits(t, exitOK)
	head, proposal, found := strings.Cut(r.out, "\n# rules:\n")
	if !found || !strings.Contains(head, "GET /a  4ms         20/s") || strings.Contains("\n"+r.out, "\nrules:") {
		t.Fatalf("%s", r.out)
	}
	text := "rules:\n"
	for line := range strings.Lines(proposal) {
		text += strings.TrimPrefix(line, "# ")
	}
	withInput(t, text, "rules", "lint", "-").exits(t, exitOK, "good, 2 rules", "a-capacity", "a-cost")

	r = withInput(t, log.String(), "replay", "--suggest", "1/day", "--json", "-")
	r.exits(t, exitOK)
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	var s suggestion
	decodeJSON(t, lines[len(lines)-1], &s)
	if len(s.Routes) != 1 || s.Routes[0].Served != 20 || s.Routes[0].Limit != "20/s" || !strings.Contains(s.CapacityRules, "rate: 20/s") {
		t.Errorf("%+v", s)
	}
}
