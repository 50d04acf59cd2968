package replay

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/checks/exact"
	"github.com/hotparam/hotparam/internal/accesslog"
	"github.com/hotparam/hotparam/rules"
)

// byCompletion sorts requests, which are in the order of their time, in the order in which they
// are done. took returns the duration of each.
func byCompletion(requests []exact.TraceRequest, took func(i int) time.Duration) []exact.TraceRequest {
	type line struct {
		exact.TraceRequest
		done int64
	}
	lines := make([]line, len(requests))
	for i, r := range requests {
		lines[i] = line{r, r.At + int64(took(i))}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.done, b.done) })
	out := make([]exact.TraceRequest, len(lines))
	for i, l := range lines {
		out[i] = l.TraceRequest
	}
	return out
}

// The lines of a log may be in the order in which requests were done, but stamped with their
// beginnings. Read from standard input, such a log gives the same events as read from a file,
// which is sorted, and as an exact count, if no line was later than the buffer. If one was, that
// is reported.
func TestOrderOfCompletion(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	file := filepath.Join(t.TempDir(), "access.log")
	var sorted, told int
	rapid.Check(t, func(t *rapid.T) {
		requests, th := randomRequests(t), randomThreshold(t)
		by := rapid.SampledFrom([]string{"all", "q"}).Draw(t, "by")
		most := rapid.SampledFrom([]int64{0, 2, 10, 15}).Draw(t, "seconds")
		lines := byCompletion(requests, func(int) time.Duration {
			return time.Duration(rapid.Int64Range(0, most*1000).Draw(t, "took")) * time.Millisecond
		})
		text := jsonLog(t, lines)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		fromFile, err := accesslog.Open([]string{file}, accesslog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		run := func(log *accesslog.Log) ([]Event, Summary) {
			got := collect{t: t}
			limit := &rules.Limit{Quota: rules.Quota{Rate: rules.Rate{N: 3, Per: time.Second}, Burst: 3}, Mode: rules.ModeLimit}
			summary, err := Run(context.Background(), Config{Rules: testRules(t, by, th, limit), Log: log, OnEvent: got.add})
			if err != nil {
				t.Fatal(err)
			}
			return got.events, summary
		}
		wantEvents, want := run(fromFile)
		events, summary := run(stdin(t, bytes.NewReader(text)))
		if summary.OutOfOrder > 0 {
			told++
			if most <= 10 || summary.Behind <= 10 || summary.Behind > float64(most) {
				t.Fatalf("lines are up to %d s late: %+v", most, summary)
			}
			again, summary := run(stdinBy(t, bytes.NewReader(text), time.Duration(most)*time.Second))
			if !equalEvents(again, wantEvents) || summary != want {
				t.Fatalf("with a buffer of %d s\ngot  %+v, %+v\nwant %+v, %+v", most, summary, again, want, wantEvents)
			}
			return
		}
		sorted++
		if !equalEvents(events, wantEvents) || summary != want {
			t.Fatalf("%+v\ngot  %+v, %+v\nwant %+v, %+v", th, summary, events, want, wantEvents)
		}
		if wrong := verify(t, stdin(t, bytes.NewReader(text)), all(requests), by, th); len(wrong) > 0 {
			t.Fatalf("%+v\n%s", th, strings.Join(wrong, "\n"))
		}
	})
	if !testing.Short() && (sorted == 0 || told == 0) {
		t.Errorf("%d logs came in order, of %d it was told that they did not: want both", sorted, told)
	}
}

func equalEvents(a, b []Event) bool { return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b) }
