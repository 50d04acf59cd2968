package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/accesslog"
	"github.com/hotparam/hotparam/internal/replay"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
)

type replayFlags struct {
	config, by, hot, limit, format string
	speed                          float64
	json                           bool
}

func newReplay(s streams) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay [--config FILE | --by PARAMS --hot N/D [--limit N/D]] LOG...",
		Short: "Send an access log through the whole pipeline, on the log's own clock",
		Long: `Send an access log through the whole pipeline, on the log's own clock: which
parameters were hot, when, and how many requests would have been refused.

Logs are in combined format or JSON lines (time, method, uri, status,
remote_addr), plain, gzip or zstd; "-" is standard input. Files are sorted by
time together; standard input is taken as it comes.`,
		Example: `  hotparam replay --by q --hot 60/1m access.log           # q within a minute
  hotparam replay --by cik --hot 10/s --limit 5/s log.zst # and what a limit would refuse
  hotparam replay --by all --hot 200/1m *.log.gz          # all parameters together
  hotparam replay --config hotparam.yaml --json access.log
  kubectl logs api | hotparam replay --by q --hot 10/s -`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error {
			return runReplay(cmd.Context(), s, f, files)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.config, "config", "", "rules `file`")
	flags.StringVar(&f.by, "by", "", "`parameters` that make a key, by commas; or all, or each")
	flags.StringVar(&f.hot, "hot", "", "`N/D`: hot at N within D, such as 10/s or 60/1m")
	flags.StringVar(&f.limit, "limit", "", "`N/D` that a hot key is held to")
	flags.StringVar(&f.format, "format", "auto", "`format` of the logs: auto, combined, json")
	flags.Float64Var(&f.speed, "speed", 0, "`times` the log's own speed; 0: as fast as it goes")
	flags.BoolVar(&f.json, "json", false, "one JSON object per event, a summary at the end")
	return cmd
}

// rules are those of the file or of the flags.
func (f *replayFlags) rules(w io.Writer) (*hotparam.Rules, error) {
	switch {
	case f.config != "" && (f.by != "" || f.hot != "" || f.limit != ""):
		return nil, usageError(errors.New("--config has the rules; it does not go with --by, --hot and --limit"))
	case f.config != "":
		file, err := loadConfig(w, f.config)
		if err != nil {
			return nil, err
		}
		return file.Rules, nil
	case f.by == "" || f.hot == "":
		return nil, usageError(errors.New("which parameters, and when are they hot? Give --by and --hot, such as --by q --hot 60/1m, or --config"))
	}
	rules, err := config.FromFlags(f.by, f.hot, f.limit)
	if err != nil {
		return nil, usageError(err)
	}
	for _, name := range rules.Rules[0].By.Names {
		if name.Source == hotparam.Path {
			return nil, usageError(fmt.Errorf("--by path:%s: a log has no routes, so no path values; give --config with a rule for the route", name.Name))
		}
	}
	return rules, nil
}

func runReplay(ctx context.Context, s streams, f replayFlags, files []string) error {
	rules, err := f.rules(s.err)
	if err != nil {
		return err
	}
	format, err := accesslog.ParseFormat(f.format)
	if err != nil {
		return usageError(err)
	}
	if f.speed < 0 {
		return usageError(fmt.Errorf("--speed %v: must not be negative", f.speed))
	}
	bar := newProgress(s)
	log, err := accesslog.Open(files, accesslog.Options{Format: format, Stdin: s.in, Progress: bar.read})
	if err != nil {
		return err
	}
	out := bufio.NewWriter(s.out)
	events := eventPrinter{out: out, json: f.json, flush: f.speed > 0 || terminal(s.out), bar: bar}
	summary, err := replay.Run(ctx, replay.Config{Rules: rules, Log: log, Speed: f.speed, OnEvent: events.print, OnProgress: bar.replayed})
	bar.done()
	showBadLines(s.err, log.Stats())
	if err != nil && summary.Requests == 0 {
		return errors.Join(err, out.Flush())
	}
	events.summary(summary)
	return errors.Join(err, events.err, out.Flush())
}

func showBadLines(w io.Writer, stats accesslog.Stats) {
	for _, bad := range stats.BadLines {
		fmt.Fprintf(w, "%s:%d: skipped: %s: %s\n", bad.File, bad.Line, bad.Reason, bad.Excerpt)
	}
	if more := stats.Bad - int64(len(stats.BadLines)); more > 0 {
		fmt.Fprintf(w, "… and %d more lines skipped\n", more)
	}
}

// eventPrinter prints events as they happen.
type eventPrinter struct {
	out   *bufio.Writer
	json  bool
	flush bool // after each event
	bar   *progress
	err   error
}

func (p *eventPrinter) print(e replay.Event) {
	p.bar.hide()
	if p.json {
		p.encode(e)
	} else {
		p.text(e)
	}
	if p.flush {
		p.keep(p.out.Flush())
	}
}

func (p *eventPrinter) encode(v any) {
	p.keep(newJSON(p.out).Encode(v))
}

func (p *eventPrinter) keep(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *eventPrinter) text(e replay.Event) {
	_, err := fmt.Fprintf(p.out, "%-4s %s  %8.1f/s  %s\n", e.Event, e.Time, e.Rate, e.Key)
	p.keep(err)
}

func (p *eventPrinter) summary(s replay.Summary) {
	if p.json {
		p.encode(s)
		return
	}
	_, err := fmt.Fprintf(p.out,
		"\n%d requests in %s, %d lines skipped: %d keys, %d of them hot at some time, %d requests over their limit, %d counts late\n",
		s.Requests, time.Duration(s.Seconds*float64(time.Second)).Round(time.Second), s.Skipped, s.Keys, s.Hot, s.Limited, s.Late)
	p.keep(err)
}

// progress is a bar on the terminal; without one it is nothing. Files are read
// as a whole before they are replayed, so there are two bars, one after the other.
type progress struct {
	out    io.Writer // nil: no bar
	shared bool      // events are printed on the same terminal
	bar    *progressbar.ProgressBar
	phase  string
	replay bool
}

func newProgress(s streams) *progress {
	if !terminal(s.err) {
		return &progress{}
	}
	return &progress{out: s.err, shared: terminal(s.out)}
}

// read tells how many bytes of the log have been read.
func (p *progress) read(done, total int64) {
	if !p.replay {
		p.set("reading", done, total, true)
	}
}

// replayed tells how many requests have been replayed.
func (p *progress) replayed(done, total int64) {
	if done < total { // else they are read meanwhile, and that bar is the better one
		p.replay = true
		p.set("replaying", done, total, false)
	}
}

func (p *progress) set(phase string, done, total int64, bytes bool) {
	if p.out == nil {
		return
	}
	if p.phase != phase {
		p.done()
		p.phase = phase
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(p.out),
			progressbar.OptionSetDescription(phase),
			progressbar.OptionShowBytes(bytes),
			progressbar.OptionShowCount(),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSetPredictTime(total > 0),
			progressbar.OptionClearOnFinish(),
		)
	}
	_ = p.bar.Set64(done) // the bar is only for show
}

// hide makes room for a line of output on the same terminal.
func (p *progress) hide() {
	if p.bar != nil && p.shared {
		_ = p.bar.Clear()
	}
}

func (p *progress) done() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
