package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/hotparam/hotparam/cmd/internal/suggest"
	"github.com/hotparam/hotparam/internal/accesslog"
)

// suggestion is the last line of `replay --suggest --json`.
type suggestion struct {
	Event    string  `json:"event"` // "suggestion"
	Requests int64   `json:"requests"`
	Skipped  int64   `json:"skipped"`
	Seconds  float64 `json:"seconds"`
	Secret   int     `json:"secret_parameters"` // parameters that were left out
	LeftOut  int64   `json:"requests_left_out"`
	Days     float64 `json:"days"`
	Hot      int     `json:"hot_keys"` // counted once each day
	PerDay   []int   `json:"hot_keys_of_each_day"`
	Most     int     `json:"most_hot_keys"` // number that the lowest thresholds make hot
	Refused  int64   `json:"refused"`       // requests that all limits together would have refused
	Rules    string  `json:"rules"`         // "" if there is nothing to propose

	Routes        []*suggest.Capacity `json:"routes,omitempty"`         // what they were seen to serve
	CapacityRules string              `json:"capacity_rules,omitempty"` // rules by that
}

// parameterLine is one of the lines before the suggestion.
type parameterLine struct {
	Event string `json:"event"` // "parameter"
	*suggest.Param
}

// keysPerDay parses a value such as "10/day".
func keysPerDay(s string) (float64, error) {
	number, unit, found := strings.Cut(s, "/")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n > 0) || n > 1e9 || found && !slices.Contains([]string{"day", "d", "1d", "24h"}, unit) {
		return 0, usageError(fmt.Errorf("--suggest %q: want a number of hot keys per day, such as --suggest 10/day", s))
	}
	return n, nil
}

// runSuggest proposes rules.
func runSuggest(ctx context.Context, s streams, f replayFlags, files []string) error {
	for flag, given := range map[string]bool{"--config": f.config != "", "--by": f.params != "", "--hot": f.hot != "", "--limit": f.limit != "",
		"--explain": f.explain != "", "--what-if": f.whatIf != "", "--speed": f.speed != 0} {
		if given {
			return usageError(fmt.Errorf("--suggest proposes its own rules, so it does not go with %s", flag))
		}
	}
	perDay, err := keysPerDay(f.suggest)
	if err != nil {
		return err
	}
	format, fields, err := f.logForm()
	if err != nil {
		return err
	}
	bar := newProgress(s)
	log, err := accesslog.Open(files, accesslog.Options{Format: format, Fields: fields, Stdin: s.in, Progress: bar.read})
	if err != nil {
		return err
	}
	kept, err := log.Keep(ctx)
	if err != nil {
		bar.done()
		showBadLines(s.err, log.Stats())
		return err
	}
	r, err := suggest.Find(ctx, suggest.Config{Log: kept, PerDay: perDay, OnReplay: bar.search})
	bar.done()
	showBadLines(s.err, kept.Stats())
	if err != nil {
		return err
	}
	out := bufio.NewWriter(s.out)
	if f.json {
		err = suggestionJSON(out, r, kept.Stats().Bad)
	} else {
		err = r.WriteText(out, perDay, printable(strings.Join(files, " ")))
	}
	if r.Rules == "" {
		fmt.Fprintln(s.err, r.Nothing())
	}
	return errors.Join(err, out.Flush(), kept.Broken())
}

func suggestionJSON(w io.Writer, r *suggest.Proposal, skipped int64) error {
	enc := newJSON(w)
	for _, p := range r.Params {
		if err := enc.Encode(parameterLine{"parameter", p}); err != nil {
			return err
		}
	}
	return enc.Encode(suggestion{
		Event: "suggestion", Requests: r.Requests, Skipped: skipped, Seconds: r.Last.Sub(r.First).Seconds(), Secret: r.Secret, LeftOut: r.LeftOut,
		Days: r.Days, Hot: r.Hot, PerDay: r.PerDay, Most: r.Most, Refused: r.Refused, Rules: r.Rules,
		Routes: r.Capacities, CapacityRules: r.CapacityRules,
	})
}
