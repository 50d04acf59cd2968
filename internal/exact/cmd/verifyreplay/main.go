// Verifyreplay runs a hotparam binary over real traces and holds what it says
// against an exact count:
//
//	go build -o /tmp/hotparam ./cmd/hotparam
//	go run ./internal/exact/cmd/verifyreplay /tmp/hotparam DATA
//
// DATA is a folder with the traces; those that are not there are left out. It
// prints a line per trace and threshold, and what is wrong; it exits with 1 if
// anything is, or if there was nothing to verify.
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

	"github.com/hotparam/hotparam/internal/exact"
)

// cases are the thresholds for each trace.
var cases = []struct{ trace, by, thresholds string }{
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
		fmt.Fprintln(flag.CommandLine.Output(), "usage: verifyreplay [-only PART] [-late D] HOTPARAM DATA")
		flag.PrintDefaults()
	}
	only := flag.String("only", "", "verify only traces with this in their `name`")
	late := flag.Duration("late", 0, "give all by standard input, in the order in which requests that take up to this `time` are done")
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := verify(ctx, flag.Arg(0), flag.Arg(1), *only, *late)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "verifyreplay:", err)
		os.Exit(1)
	}
}

func verify(ctx context.Context, binary, data, only string, late time.Duration) error {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "trace\tby\tthreshold\trequests\tkeys\tmust\tmay\thot\tmissed\tfalse\twrong\tseconds")
	var wrong []string
	verified := 0
	for _, c := range cases {
		path := filepath.Join(data, c.trace)
		if !strings.Contains(c.trace, only) {
			continue
		}
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			fmt.Fprintln(os.Stderr, "not there:", path)
			continue
		}
		for threshold := range strings.FieldsSeq(c.thresholds) {
			r, err := run(ctx, binary, trace{path, late}, c.by, threshold)
			if err != nil {
				return fmt.Errorf("%s by %s at %s: %w", c.trace, c.by, threshold, err)
			}
			verified++
			name, _, _ := strings.Cut(c.trace, ".")
			fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.2f\n", name, c.by, threshold, r.requests, r.want.Keys,
				len(r.want.Must), len(r.want.May), len(r.hot), len(r.want.Missing(r.hot)), len(r.want.False(r.hot)), len(r.wrong), r.took.Seconds())
			for _, w := range r.wrong {
				wrong = append(wrong, fmt.Sprintf("%s by %s at %s: %s", name, c.by, threshold, w))
			}
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%d things are wrong:\n%s", len(wrong), strings.Join(wrong, "\n"))
	}
	if verified == 0 {
		return fmt.Errorf("no trace in %s", data)
	}
	return nil
}

type outcome struct {
	want     exact.Result
	requests int64
	hot      []string
	wrong    []string
	took     time.Duration
}

// run counts a trace exactly and replays it.
func run(ctx context.Context, binary string, from trace, by, threshold string) (outcome, error) {
	n, d, err := parse(threshold)
	if err != nil {
		return outcome{}, err
	}
	var o outcome
	counter := exact.NewCounter(exact.NewThreshold(n, d))
	for r, err := range exact.Trace(from.path) {
		if err != nil {
			return outcome{}, err
		}
		o.requests++
		counter.Tick(r.At)
		for _, key := range exact.Keys(by, r.Method, r.Target) {
			counter.Add(r.At, key)
		}
	}
	o.want = counter.Result()

	began := time.Now()
	events, summary, err := replay(ctx, binary, from, by, threshold)
	if err != nil {
		return outcome{}, err
	}
	o.took = time.Since(began)
	o.hot = exact.HotKeys(events)
	o.wrong = append(o.want.Compare(events), o.want.CompareSummary(summary, o.requests, counter.Seconds())...)
	return o, nil
}

// trace is a file, and by how much its lines are to come late.
type trace struct {
	path string
	late time.Duration
}

// requests yields them in the order in which they are done: each takes a time up to
// late, the same in each run.
func (t trace) requests() iter.Seq2[exact.Request, error] {
	if t.late == 0 {
		return exact.Trace(t.path)
	}
	return func(yield func(exact.Request, error) bool) {
		type line struct {
			exact.Request
			done int64
		}
		var lines []line
		random := rand.New(rand.NewPCG(1, 2))
		for r, err := range exact.Trace(t.path) {
			if err != nil {
				yield(r, err)
				return
			}
			lines = append(lines, line{r, r.At + random.Int64N(int64(t.late))})
		}
		slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.done, b.done) })
		for _, l := range lines {
			if !yield(l.Request, nil) {
				return
			}
		}
	}
}

// replay runs the binary; what is no access log, or is to come late, is made into
// one on its standard input.
func replay(ctx context.Context, binary string, from trace, by, threshold string) ([]exact.Event, exact.Summary, error) {
	file := from.path
	if exact.Made(from.path) || from.late > 0 {
		file = "-"
	}
	cmd := exec.CommandContext(ctx, binary, "replay", "--json", "--by", by, "--hot", threshold, file)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, exact.Summary{}, err
	}
	var in io.WriteCloser
	if file == "-" {
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
	_, _ = io.Copy(io.Discard, out) // whatever is left, so that the command can end
	writeErr, runErr := <-written, cmd.Wait()
	if err := errors.Join(runErr, readErr, writeErr); err != nil {
		return nil, exact.Summary{}, fmt.Errorf("%s: %w\n%s", cmd, err, complaints.String())
	}
	return events, summary, nil
}

// parse reads "N/D": D is a duration, "s" is "1s".
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
