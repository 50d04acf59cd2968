package screen

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/demo"
	"github.com/hotparam/hotparam/cmd/internal/termtext"
	"github.com/hotparam/hotparam/internal/hotwords"
)

// The intervals of the updates and of the status lines.
const (
	linesEvery  = 100 * time.Millisecond
	statusEvery = 5 * time.Second
)

// Lines runs the demo without a terminal. It writes a line when a key becomes hot or cools, and a
// status line every few seconds.
func Lines(ctx context.Context, cfg Config) error {
	d, err := demo.New(ctx, cfg.Transport, newLog(cfg.Err))
	if err != nil {
		return err
	}
	writeIntro(cfg.Out, d)
	ctx, cancel := runFor(ctx, cfg.Length)
	defer cancel()
	began := time.Now()
	lines := newLinePrinter(cfg.Out, began, func(text string) string { return tryCurl(d, text)[0] })
	defer startCrowd(d, cfg.Length)()
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	ticker := time.NewTicker(linesEvery)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			writeSummary(cfg.Out, d.Result(), time.Since(began))
			return err
		case <-ticker.C:
			if now, err := snapshot(ctx, d); err == nil { // an error means that the demo is ending
				lines.show(now)
			}
		}
	}
}

// linePrinter prints the changes between snapshots.
type linePrinter struct {
	out   io.Writer
	began time.Time
	curl  func(text string) string

	tried  bool // whether the command was printed
	hot    []demo.CountedKey
	meter  meter
	status time.Time // time of the next status line
	crowd  bool      // whether a crowd is running
}

func newLinePrinter(out io.Writer, began time.Time, curl func(text string) string) *linePrinter {
	return &linePrinter{out: out, began: began, curl: curl, status: began.Add(statusEvery)}
}

func (l *linePrinter) show(s demo.Moment) {
	after := s.At.Sub(l.began).Seconds()
	switch on := s.CrowdLeft > 0; {
	case on && !l.crowd:
		fmt.Fprintf(l.out, "%6.1fs  crowd %d/s more ask for %s\n", after, demo.CrowdRate, demo.CrowdKey)
		l.crowd = true
	case !on && l.crowd:
		fmt.Fprintf(l.out, "%6.1fs  crowd over\n", after)
		l.crowd = false
	}
	for _, k := range missing(s.Hot, l.hot) {
		fmt.Fprintf(l.out, "%6.1fs  hot   %s, %.0f/s\n", after, termtext.Printable(k.Text), k.Rate)
		if !l.tried {
			l.tried = true
			fmt.Fprintf(l.out, "         try   %s\n", l.curl(termtext.Printable(k.Text)))
		}
	}
	for _, k := range missing(l.hot, s.Hot) {
		fmt.Fprintf(l.out, "%6.1fs  cool  %s, was hot for %.0f s, %s refused\n",
			after, termtext.Printable(k.Text), s.At.Sub(k.Since).Seconds(), hotwords.Thousands(k.Refused))
	}
	l.hot = s.Hot
	l.meter.add(s.At, s.Allowed+s.Limited)
	if s.At.Before(l.status) {
		return
	}
	l.status = l.status.Add(statusEvery)
	fmt.Fprintf(l.out, "%6.1fs        %.0f requests/s, %d keys seen, %d hot, %s refused\n",
		after, l.meter.perSecond(), s.Keys, len(s.Hot), hotwords.Thousands(s.Limited))
	if s.CrowdLeft > 0 && s.Effects[demo.WithoutLimits].P50 != nil {
		fmt.Fprintf(l.out, "%9sthe others' p99: %s\n", "", inWords(s.Effects, othersP99))
		fmt.Fprintf(l.out, "%9sthe crowd is served: %s\n", "", inWords(s.Effects, servedCrowd))
	}
}

// missing returns the keys of these that are not among those.
func missing(these, those []demo.CountedKey) []demo.CountedKey {
	return slices.DeleteFunc(slices.Clone(these), func(k demo.CountedKey) bool {
		return slices.ContainsFunc(those, func(other demo.CountedKey) bool { return other.Key == k.Key })
	})
}

// writeIntro writes the parts of the demo and their addresses.
func writeIntro(w io.Writer, d *demo.Demo) {
	rule := demo.Rules().Rules[0]
	urls := strings.Join(d.URLs(), " ")
	fmt.Fprintf(w, "hotparam demo: %d API instances, the aggregator and an embedded Redis in one process, on a real access log\n", demo.Instances)
	fmt.Fprintf(w, "  rule   %s by [%s]: hot at %s over all instances, then %s (burst %d) on each\n", demo.Route, demo.Param, rule.Hot[0].Rate, rule.Limit.Rate, rule.Limit.Burst)
	fmt.Fprintf(w, "  API    %s\n", urls)
	fmt.Fprintf(w, "  over   %s\n", d.Transport())
	fmt.Fprintf(w, "  Redis  %s\n", d.RedisAddr())
	fmt.Fprintf(w, "  try    %s\n\n", tryRedis(d)[0])
}

// summaryKeys is the number of keys that a summary lists.
const summaryKeys = 15

// writeSummary writes the demo's result.
func writeSummary(w io.Writer, r demo.Result, took time.Duration) {
	var b bytes.Buffer
	if len(r.Hot) > 0 {
		fmt.Fprintf(&b, "\n%8s  %8s  %s\n", "PEAK/S", "REFUSED", "KEY")
	}
	for i, k := range r.Hot {
		if i == summaryKeys {
			fmt.Fprintf(&b, "%20s%d more\n", "", len(r.Hot)-i)
			break
		}
		fmt.Fprintf(&b, "%8.0f  %8s  %s\n", k.PeakRate, hotwords.Thousands(k.Limited), termtext.Printable(k.Key))
	}
	fmt.Fprintf(&b, "\n%s requests in %.0f s: %s passed, %s refused", hotwords.Thousands(r.Requests), took.Seconds(), hotwords.Thousands(r.Allowed), hotwords.Thousands(r.Limited))
	if r.Failed > 0 {
		fmt.Fprintf(&b, ", %s failed", hotwords.Thousands(r.Failed))
	}
	fmt.Fprintf(&b, "; %d keys were hot at some time\n", len(r.Hot))
	if r.Enforce.P50 != nil {
		fmt.Fprintf(&b, "limited by all %d instances after %.0f ms (p50), %.0f ms (p99)\n", demo.Instances, *r.Enforce.P50, *r.Enforce.P99)
	}
	b.WriteString(crowdSummary(r.Crowd))
	fmt.Fprintln(&b, dropped(r.Dropped))
	_, _ = b.WriteTo(w) // the last output: an error cannot be reported any more
}
