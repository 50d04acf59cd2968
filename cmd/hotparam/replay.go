package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam/cmd/internal/replay"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/accesslog"
	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/rules"
)

type replayFlags struct {
	config, params, hot, limit string
	format, fields, clock      string
	explain, whatIf, suggest   string
	reorder                    time.Duration
	speed                      float64
	json                       bool
}

func newReplay(s streams) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay [--config FILE | --by PARAMS --hot N/D [--limit N/D] | --suggest N/day] [--explain KEY | --what-if FILE] LOG...",
		Short: "Send an access log through the whole pipeline, on the log's own clock",
		Long: `Send an access log through the whole pipeline, on the log's own clock: which
parameters were hot, when, and how many requests would have been refused.

Logs are in combined format, or JSON lines as Caddy, Traefik, Envoy and nginx write
them or with time, method, uri, status, bytes, remote_addr. The first valid line decides
the format. Other JSON needs --fields, which names the place of each field: time,
method, uri (or path and query, or request, a line such as GET /a HTTP/1.1), caller,
status, bytes, duration (in seconds, or duration_ms, _us, _ns), header:NAME,
cookie:NAME. A dot leads into an object; one within a name is written \., a comma \,.
With --format csv, tsv or space a field is a column: its number from 1, or its name in
the file's first line. Logs may be plain, gzip or zstd; "-" is standard input. Files
are sorted by time together. Standard input is followed, and sorted within --reorder
of the log's own time, since servers write a line at the end of a request and many stamp
it with the start. Events are delayed by that time. Requests that come later than that
are reported, with the --reorder that would be enough.

Each event names the threshold that made the key hot. Rules with count: bytes need
logs that have them, rules with count: ms logs with durations, and rules by header or
cookie those with the header or cookie.

With --explain KEY it explains, pane by pane, why the key was hot or not. KEY is as
list prints it, with or without the rule's id. --json has one "explanation" object for
each rule that counted the key: counted, hot (times), seconds, limited, listings,
and of each of thresholds its steps (decision, time, low, high, against,
hold_until, by) and panes (time, counted, low, high, enter, exit, hot, listed).

With --what-if FILE the log is replayed by both versions of the rules. It shows which
keys each would have limited, and how many requests; keys that differ come first. --json
has a "key" object for each (rule, key, changed, and before and after: hot, seconds,
limited), then a "summary" (requests, changed, and before and after: hot,
limited).

With --suggest N/day no rules are needed: it proposes them. It finds the routes of the
log (numbers, UUIDs and the like in paths become {…}) and their parameters, and for each
how many requests its values take (the first, the first ten, the most of one at a time);
then it looks for thresholds by which about N keys a day become hot, all rules together,
by replaying the log. Values that are always frequent or mean none are excepted. Each rule
has its threshold as a limit in shadow mode, with what it would have refused in this log;
a limit that refuses over 3% is named first. On standard output is a rules file, with the
reasons in comments.
Parameters that look secret are left out. If the log has durations, it also shows what
each route served at its usual speed, with limits by that as comments. --json has a
"parameter" object for each, then a "suggestion" (hot_keys, hot_keys_of_each_day,
refused, rules, routes, capacity_rules).`,
		Example: `  hotparam replay --by q --hot 60/1m access.log           # q within a minute
  hotparam replay --by cik --hot 10/s --limit 5/s log.zst # and what a limit would refuse
  hotparam replay --by all --hot 200/1m *.log.gz          # all parameters together
  hotparam replay --config hotparam.yaml --json access.log
  hotparam replay --by q --hot 60/1m --explain 'GET /search?q=phone' access.log
  hotparam replay --config hotparam.yaml --what-if new.yaml access.log
  kubectl logs api | hotparam replay --by q --hot 10/s -
  hotparam replay --suggest 10/day access.log > hotparam.yaml
  hotparam replay --by q --hot 60/1m --fields 'time=ts,method=http.verb,uri=http.url' --time-format ms api.jsonl
  hotparam replay --by q --hot 60/1m --format tsv --fields time=1,method=2,uri=3 access.tsv
  tail -f access.log | hotparam replay --by q --hot 10/s --reorder 30s -`,
		Args: args("LOG..."),
		RunE: func(cmd *cobra.Command, files []string) error {
			if cmd.Flags().Changed("reorder") && !slices.Contains(files, "-") {
				return usageError(errors.New("--reorder is for standard input; files are sorted as a whole"))
			}
			if f.suggest != "" {
				return runSuggest(cmd.Context(), s, f, files)
			}
			return runReplay(cmd.Context(), s, f, files)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.config, "config", "", "rules `file`")
	flags.StringVar(&f.params, "by", "", "`parameters` that make a key, separated by commas; or all (one key of all), each (a key of each), combinations (a key of each set of them)")
	flags.StringVar(&f.hot, "hot", "", "`threshold`: 10/s, 60/1m, 20% of the route, 8x the baseline; 20%/1m with a window")
	flags.StringVar(&f.limit, "limit", "", "limit of a hot key, as `N/D`")
	flags.StringVar(&f.format, "format", "auto", "`format` of the logs: "+accesslog.Formats)
	flags.StringVar(&f.fields, "fields", "", "`places` of the fields in JSON or delimited lines, such as time=ts,method=request.method,uri=request.uri")
	flags.StringVar(&f.clock, "time-format", "", "`format` of the time of --fields: rfc3339, s, ms, us, ns, clf or a layout of Go; by default it is recognised")
	flags.StringVar(&f.explain, "explain", "", "`key` to explain: why was it hot, or not?")
	flags.StringVar(&f.whatIf, "what-if", "", "rules `file` to compare with: who would be limited by it?")
	flags.StringVar(&f.suggest, "suggest", "", "propose rules by which about `N/day` keys become hot")
	durationVar(flags, &f.reorder, "reorder", 10*time.Second, "`time` of the log that is buffered to sort standard input; 0 means unsorted")
	flags.Float64Var(&f.speed, "speed", 0, "`times` the log's own speed; 0 means as fast as it goes")
	flags.BoolVar(&f.json, "json", false, "one JSON object per line: events, then a summary")
	return cmd
}

// rules returns the rules of the file or of the flags.
func (f *replayFlags) rules(w io.Writer) (*rules.Rules, error) {
	switch {
	case f.config != "" && (f.params != "" || f.hot != "" || f.limit != ""):
		return nil, usageError(errors.New("--config has the rules; it does not go with --by, --hot and --limit"))
	case f.config != "":
		file, err := loadConfig(w, f.config)
		if err != nil {
			return nil, err
		}
		if err := file.ReadRedactKey(); err != nil {
			return nil, fmt.Errorf("%w; replay redacts values as instances do: give it their key, or any other of %d bytes", err, rules.MinRedactKey)
		}
		return file.Rules, nil
	case f.params == "" || f.hot == "":
		return nil, usageError(errors.New("which parameters, and when are they hot? Give --by and --hot, such as --by q --hot 60/1m, or --config"))
	}
	ruleset, err := config.FromFlags(f.params, f.hot, f.limit)
	if err != nil {
		return nil, usageError(err)
	}
	for _, name := range ruleset.Rules[0].By.Names {
		if name.Source == rules.Path {
			return nil, usageError(fmt.Errorf("--by path:%s: a log has no routes, and so no path values; give --config with a rule for the route", name.Name))
		}
		if !inLogs(name.Source) {
			return nil, usageError(fmt.Errorf("--by %s:%s: a log has the parameters of the query and the path, headers and cookies only", name.Source, name.Name))
		}
	}
	return ruleset, nil
}

func runReplay(ctx context.Context, s streams, f replayFlags, files []string) error {
	ruleset, err := f.rules(s.err)
	if err != nil {
		return err
	}
	format, fields, err := f.logForm()
	if err != nil {
		return err
	}
	if f.speed < 0 {
		return usageError(fmt.Errorf("--speed %v: must not be negative", f.speed))
	}
	if f.reorder < 0 {
		return usageError(fmt.Errorf("--reorder %v: must not be negative", f.reorder))
	}
	for i := range ruleset.Rules {
		showNotInLogs(s.err, &ruleset.Rules[i])
	}
	run := replayRun{streams: s, replayFlags: f, files: files, format: format, places: fields, rules: ruleset}
	switch {
	case f.explain != "" && f.whatIf != "":
		return usageError(errors.New("--explain and --what-if do not go together"))
	case f.explain != "":
		return run.explain(ctx)
	case f.whatIf != "":
		return run.whatIf(ctx)
	}
	return run.events(ctx)
}

// replayRun is one run of the command.
type replayRun struct {
	streams
	replayFlags
	files  []string
	format accesslog.Format
	places *accesslog.Fields
	rules  *rules.Rules
}

// replay sends the log through the pipeline. If remarks is true, it reports the skipped lines and
// the requests out of order.
func (r *replayRun) replay(ctx context.Context, c replay.Config, bar *progress, remarks bool) (replay.Summary, error) {
	reorder := r.reorder
	if reorder == 0 {
		reorder = -1 // no sorting
	}
	log, err := accesslog.Open(r.files, accesslog.Options{
		Format: r.format, Fields: r.places, Values: replay.Values(c.Rules), Stdin: r.in, Reorder: reorder, Progress: bar.read,
	})
	if err != nil {
		return replay.Summary{}, err
	}
	c.Log, c.Speed, c.OnProgress = log, r.speed, bar.replayed
	summary, err := replay.Run(ctx, c)
	bar.done()
	if remarks {
		showBadLines(r.err, log.Stats())
		showDisorder(r.err, r.reorder, log.Stats().Disorder)
	}
	showNoBytes(r.err, c.Rules, summary)
	showNotTold(r.err, c.Rules, summary)
	return summary, err
}

// events prints each key that becomes hot or cools.
func (r *replayRun) events(ctx context.Context) error {
	bar, out := newProgress(r.streams), bufio.NewWriter(r.out)
	live := r.speed > 0 || terminal(r.out) || slices.Contains(r.files, "-")
	events := eventPrinter{out: out, json: r.json, flush: live, bar: bar}
	summary, err := r.replay(ctx, replay.Config{Rules: r.rules, OnEvent: events.print, OnRelisted: events.relisted}, bar, true)
	if err != nil && summary.Requests == 0 {
		return errors.Join(err, out.Flush())
	}
	events.summary(summary)
	return errors.Join(err, events.err, out.Flush())
}

// orderWords describes how many requests were out of order.
func orderWords(s replay.Summary) string {
	if s.OutOfOrder == 0 {
		return "all in order"
	}
	return fmt.Sprintf("%d out of order by up to %s", s.OutOfOrder, hotwords.Seconds(s.Behind))
}

// eventPrinter prints events as they happen.
type eventPrinter struct {
	out   *bufio.Writer
	json  bool
	flush bool // flush after each event
	bar   *progress

	widest int // width of the longest threshold so far
	err    error
}

func (p *eventPrinter) print(e replay.Event) {
	p.bar.hide()
	if p.json {
		p.encode(e)
	} else {
		p.text(e)
	}
	if p.flush {
		p.recordError(p.out.Flush())
	}
}

// relisted prints a change in how a hot key is listed. It prints nothing in JSON, where events
// only begin and end a key's hot time; there the key's explanation has these changes.
func (p *eventPrinter) relisted(e replay.Event) {
	if !p.json {
		p.print(e)
	}
}

func (p *eventPrinter) encode(v any) {
	p.recordError(newJSON(p.out).Encode(v))
}

func (p *eventPrinter) recordError(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *eventPrinter) text(e replay.Event) {
	threshold := hotwords.Cause(e.Cause)
	_, err := fmt.Fprintf(p.out, "%-4s %s  %10s  %-*s  %s\n", e.Event, e.Time, hotwords.Speed(e.Rate, e.Cause.Unit), p.width(threshold), threshold, e.Key)
	p.recordError(err)
}

// width returns the width of the column of thresholds.
func (p *eventPrinter) width(threshold string) int {
	p.widest = max(p.widest, len(threshold))
	return p.widest
}

func (p *eventPrinter) summary(s replay.Summary) {
	if p.json {
		p.encode(s)
		return
	}
	_, err := fmt.Fprintf(p.out,
		"\n%d requests in %s, %d lines skipped, %s: %d keys, %d of them hot at some time, %d requests over their limit, %d counts late\n",
		s.Requests, time.Duration(s.Seconds*float64(time.Second)).Round(time.Second), s.Skipped, orderWords(s), s.Keys, s.Hot, s.Limited, s.Late)
	p.recordError(err)
}
