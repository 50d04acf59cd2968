// Verifyreplay replays real traces with a hotparam binary and compares its output with exact
// counts.
//
//	go build -o /tmp/hotparam ./cmd/hotparam
//	go run ./checks/exact/cmd/verifyreplay /tmp/hotparam DATA
//
// DATA is a folder with the traces; missing ones are skipped. Verifyreplay prints a line per
// trace and threshold, then any errors. It exits with 1 if there are errors or if there was
// nothing to verify.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hotparam/hotparam/checks/exact"
)

// kinds lists, for each trace, the keys and the window with which all kinds of threshold are
// verified, for each min between least and greatest.
var kinds = []struct {
	trace, keyBy    string
	window          time.Duration
	least, greatest int64
}{
	{"edgar-2017-06-30.access.log.zst", "cik", time.Second, 1, 20},
	{"dns-2018-03-24.access.jsonl.zst", "name", time.Second, 1, 20},
	{"higgs-2012-07-01.access.log.zst", "user", time.Minute, 1, 20},
	{"semicomplete-apache_logs.log.zst", "each", time.Minute, 1, 20},
	{"scan-acunetix.log.zst", "each", 15 * time.Second, 1, 20},
	{"ruetoj-2017-11_12.csv.zst", "name", 10 * time.Minute, 1, 20},
	{"mooncake-conversation.jsonl.zst", "hash", 10 * time.Second, 3, 20}, // below a min of 3, 100,000 keys are hot at a time
	{"cache2k-web07.keys.zst", "id", time.Second, 3, 20},
	{"cache2k-orm-busy.keys.zst", "id", time.Second, 20, 20},
}

// cases lists the thresholds of each trace.
var cases = []struct{ trace, keyBy, thresholds string }{
	{"edgar-2017-06-30.access.log.zst", "cik", "5/s 10/s 20/s 60/1m 40/10s 40/15s"},
	{"edgar-2017-06-30.access.log.zst", "all", "2/s 3/10s"},
	{"edgar-2017-06-30.access.log.zst", "each", "10/s 100/15s"},
	{"dns-2018-03-24.access.jsonl.zst", "name", "5/s 10/s 20/s 50/s 100/10s 100/15s 300/1m"},
	{"dns-2018-03-24.access.jsonl.zst", "all", "10/s"},
	{"dns-2018-03-24.access.jsonl.zst", "each", "20/s"},
	{"higgs-2012-07-01.access.log.zst", "user", "30/1m 60/1m 120/1m 100/10m 200/1h 10/10s 12/15s 4/s"},
	{"higgs-2012-07-01.access.log.zst", "kind,user", "60/1m"},
	{"semicomplete-apache_logs.log.zst", "each", "2/s 3/10s 5/1m 20/1h"},
	{"semicomplete-apache_logs.log.zst", "all", "2/s 10/1m"},
	{"scan-acunetix.log.zst", "each", "10/1m 20/1m 30/1m 5/10s 5/15s 3/s"},
	{"scan-acunetix.log.zst", "all", "20/1m 10/s"},
	{"ruetoj-2017-11_12.csv.zst", "all", "10/1m 30/10m"},
	{"ruetoj-2017-11_12.csv.zst", "name", "5/1m 30/10m 44/10m"},
	{"mooncake-conversation.jsonl.zst", "hash", "10/10s 100/1m 5/s"},
	{"cache2k-web07.keys.zst", "id", "20/s 50/s 100/s"},
	{"cache2k-orm-busy.keys.zst", "id", "50/s 100/s 300/10s 1000/1m"},
}

func main() {
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: verifyreplay [-only PART] [-min N] [-late D] HOTPARAM DATA")
		flag.PrintDefaults()
	}
	only := flag.String("only", "", "verify only traces with this in their `name`")
	least := flag.Int64("min", 0, "verify only all kinds of threshold with this `count`")
	late := flag.Duration("late", 0, "give all by standard input, in the order in which requests that take up to this `time` are done")
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := verify(ctx, flag.Arg(0), flag.Arg(1), selection{only: *only, least: *least, delay: *late})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "verifyreplay:", err)
		os.Exit(1)
	}
}

// selection holds the flags that restrict the traces and thresholds to verify.
type selection struct {
	only  string        // part of the names of the traces
	least int64         // the only count of all kinds of threshold; zero means each
	delay time.Duration // see traceFile.delay
}

func verify(ctx context.Context, binary, data string, chosen selection) error {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "trace\tby\tthreshold\trequests\tkeys\tmust\tmay\thot\tevents\tmissed\tfalse\twrong\tseconds")
	v := verifier{binary: binary, table: table}
	for _, c := range cases {
		path := filepath.Join(data, c.trace)
		if !strings.Contains(c.trace, chosen.only) {
			continue
		}
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			fmt.Fprintln(os.Stderr, "not there:", path)
			continue
		}
		for threshold := range strings.FieldsSeq(c.thresholds) {
			if chosen.least > 0 {
				break
			}
			n, d, err := parse(threshold)
			if err != nil {
				return err
			}
			if err := v.run(ctx, traceFile{path, chosen.delay}, threshold, []exact.RuleSpec{{By: c.keyBy, Hot: []exact.ThresholdSpec{exact.NewThreshold(n, d)}}}); err != nil {
				return err
			}
		}
	}
	for _, k := range kinds {
		path := filepath.Join(data, k.trace)
		if _, err := os.Stat(path); !strings.Contains(k.trace, chosen.only) || errors.Is(err, os.ErrNotExist) {
			continue
		}
		for least := k.least; least <= k.greatest; least++ {
			if chosen.least > 0 && least != chosen.least {
				continue
			}
			if err := v.run(ctx, traceFile{path, chosen.delay}, fmt.Sprintf("all kinds, min %d/%v", least, k.window), exact.Kinds(k.keyBy, least, k.window)); err != nil {
				return err
			}
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(v.wrong) > 0 {
		return fmt.Errorf("%d things are wrong:\n%s", len(v.wrong), strings.Join(v.wrong, "\n"))
	}
	if v.verified == 0 {
		return fmt.Errorf("no trace in %s", data)
	}
	return nil
}

// verifier collects the results of a run.
type verifier struct {
	binary   string
	table    io.Writer
	wrong    []string
	verified int
}

// run counts a trace exactly, replays it with the same rules and records the comparison. All
// rules have the same By.
func (v *verifier) run(ctx context.Context, from traceFile, what string, rules []exact.RuleSpec) error {
	var file strings.Builder
	file.WriteString("rules:\n")
	counters := make(map[string]*exact.Counter)
	for i, r := range rules {
		id := fmt.Sprint("r", i)
		file.WriteString(r.YAML(id))
		counters[id] = exact.NewCounter(r)
	}
	requests, seconds := int64(0), 0.0
	for r, err := range exact.Trace(from.path) {
		if err != nil {
			return err
		}
		requests++
		keys := exact.Keys(rules[0].By, r.Method, r.Target)
		for _, c := range counters {
			c.Tick(r.At)
			for _, key := range keys {
				c.Add(r.At, key, 1)
			}
		}
	}
	want := make(map[string]exact.LogResult)
	must, may, keys := 0, 0, 0
	for id, c := range counters {
		r := c.Result()
		want[id], seconds = r, c.Seconds()
		must, may, keys = must+len(r.Must), may+len(r.May), keys+r.Keys
	}

	began := time.Now()
	events, summary, err := replay(ctx, v.binary, from, file.String())
	if err != nil {
		return fmt.Errorf("%s at %s: %w", from.path, what, err)
	}
	took := time.Since(began)
	hot, missed, falsely := 0, 0, 0
	for id, r := range want {
		keys := exact.HotKeys(slices.DeleteFunc(slices.Clone(events), func(e exact.HotChange) bool { return e.Rule != id }))
		hot, missed, falsely = hot+len(keys), missed+len(r.Missing(keys)), falsely+len(r.False(keys))
	}
	wrong := append(exact.CompareRules(want, events), exact.CompareSummary(want, summary, requests, seconds)...)
	name, _, _ := strings.Cut(filepath.Base(from.path), ".")
	fmt.Fprintf(v.table, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.2f\n", name, rules[0].By, what, requests, keys,
		must, may, hot, len(events), missed, falsely, len(wrong), took.Seconds())
	for _, w := range wrong {
		v.wrong = append(v.wrong, fmt.Sprintf("%s by %s at %s: %s", name, rules[0].By, what, w))
	}
	v.verified++
	return nil
}

// traceFile is a file and the most by which its lines are delayed.
type traceFile struct {
	path  string
	delay time.Duration
}

// requests yields the requests in the order in which they are done. Each takes a time up to delay,
// which is the same in each run.
func (t traceFile) requests() iter.Seq2[exact.TraceRequest, error] {
	if t.delay == 0 {
		return exact.Trace(t.path)
	}
	return func(yield func(exact.TraceRequest, error) bool) {
		type timedRequest struct {
			exact.TraceRequest
			done int64
		}
		var lines []timedRequest
		random := rand.New(rand.NewPCG(1, 2))
		for r, err := range exact.Trace(t.path) {
			if err != nil {
				yield(r, err)
				return
			}
			lines = append(lines, timedRequest{r, r.At + random.Int64N(int64(t.delay))})
		}
		slices.SortStableFunc(lines, func(a, b timedRequest) int { return cmp.Compare(a.done, b.done) })
		for _, l := range lines {
			if !yield(l.TraceRequest, nil) {
				return
			}
		}
	}
}

// replay runs the binary with a rules file. A trace that is not an access log, or is to be
// delayed, is converted to one on standard input.
func replay(ctx context.Context, binary string, from traceFile, rules string) (events []exact.HotChange, summary exact.Summary, err error) {
	config, err := os.CreateTemp("", "verifyreplay-*.yaml")
	if err != nil {
		return nil, exact.Summary{}, err
	}
	defer func() { err = errors.Join(err, os.Remove(config.Name())) }()
	_, err = config.WriteString(rules)
	if err := errors.Join(err, config.Close()); err != nil {
		return nil, exact.Summary{}, err
	}
	log := from.path
	if exact.Made(from.path) || from.delay > 0 {
		log = "-"
	}
	cmd := exec.CommandContext(ctx, binary, "replay", "--json", "--config", config.Name(), log)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, exact.Summary{}, err
	}
	var in io.WriteCloser
	if log == "-" {
		if in, err = cmd.StdinPipe(); err != nil {
			return nil, exact.Summary{}, err
		}
	}
	if err := cmd.Start(); err != nil {
		return nil, exact.Summary{}, err
	}
	written := make(chan error, 1)
	go func() {
		if in == nil {
			written <- nil
			return
		}
		written <- errors.Join(exact.WriteJSON(in, from.requests()), in.Close())
	}()
	events, summary, readErr := exact.ReadOutput(out)
	_, _ = io.Copy(io.Discard, out) // the rest, so that the command can end
	writeErr, runErr := <-written, cmd.Wait()
	if err := errors.Join(runErr, readErr, writeErr); err != nil {
		return nil, exact.Summary{}, fmt.Errorf("%s: %w\n%s", cmd, err, complaints.String())
	}
	return events, summary, nil
}

// parse parses "N/D"; D is a duration, and "s" means "1s".
func parse(threshold string) (int64, time.Duration, error) {
	count, per, _ := strings.Cut(threshold, "/")
	if per == "s" {
		per = "1s"
	}
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		return 0, 0, err
	}
	d, err := time.ParseDuration(per)
	return n, d, err
}
