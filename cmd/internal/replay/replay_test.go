package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/checks/exact"
	"github.com/hotparam/hotparam/cmd/internal/demo/data"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/accesslog"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

// verify replays a log and compares the result with the exact count of the same requests, which
// are in order.
func verify(t tester, log *accesslog.Log, requests iter.Seq2[exact.TraceRequest, error], by string, th exact.ThresholdSpec) (wrong []string) {
	t.Helper()
	counter, n := exact.NewCounter(exact.RuleSpec{By: by, Hot: []exact.ThresholdSpec{th}}), int64(0)
	for r, err := range requests {
		if err != nil {
			t.Fatal(err)
		}
		n++
		counter.Tick(r.At)
		for _, key := range exact.Keys(by, r.Method, r.Target) {
			counter.Add(r.At, key, 1)
		}
	}
	want := counter.Result()
	got := collect{t: t}
	summary, err := Run(context.Background(), Config{Rules: testRules(t, by, th, nil), Log: log, OnEvent: got.add})
	if err != nil {
		t.Fatal(err)
	}
	if summary.Event != "summary" || summary.Limited != 0 {
		t.Fatalf("summary %+v", summary)
	}
	return append(want.Compare(got.exact()), want.CompareSummary(exactSummary(summary), n, counter.Seconds())...)
}

func all(requests []exact.TraceRequest) iter.Seq2[exact.TraceRequest, error] {
	return func(yield func(exact.TraceRequest, error) bool) {
		for _, r := range requests {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// traceCase is a trace, the key to count by, and the thresholds.
type traceCase struct{ trace, by, thresholds string }

// The short ones of the traces that are not in the repository. cmd/verifyreplay has more.
func TestTraces(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	checkTraces(t, []traceCase{
		{"edgar-2017-06-30.access.log.zst", "cik", "5/1s 10/1s 20/1s 60/1m 40/10s 40/15s"},
		{"semicomplete-apache_logs.log.zst", "each", "2/1s 3/10s 5/1m"},
		{"scan-acunetix.log.zst", "each", "10/1m 20/1m 30/1m 5/10s 5/15s"},
		{"scan-acunetix.log.zst", "all", "20/1m"},
		{"ruetoj-2017-11_12.csv.zst", "name", "30/10m"},
	})
}

func checkTraces(t *testing.T, cases []traceCase) {
	for _, c := range cases {
		t.Run(c.trace+"/"+c.by, func(t *testing.T) {
			path := testenv.SharedData(t, c.trace)
			requests := readTrace(t, path)
			for threshold := range strings.FieldsSeq(c.thresholds) {
				t.Run(strings.ReplaceAll(threshold, "/", "_"), func(t *testing.T) {
					checkTrace(t, path, requests, c.by, threshold)
				})
			}
		})
	}
}

// readTrace returns the requests of a trace. They are read once for all counts.
func readTrace(t *testing.T, path string) (requests []exact.TraceRequest) {
	t.Helper()
	for r, err := range exact.Trace(path) {
		if err != nil {
			t.Fatal(err)
		}
		requests = append(requests, r)
	}
	return requests
}

func checkTrace(t *testing.T, path string, requests []exact.TraceRequest, by, threshold string) {
	t.Helper()
	var n int64
	count, per, _ := strings.Cut(threshold, "/")
	d, err := time.ParseDuration(per)
	if _, scanErr := fmt.Sscan(count, &n); err != nil || scanErr != nil {
		t.Fatal(threshold, err, scanErr)
	}
	var log *accesslog.Log
	if exact.Made(path) {
		in, out := io.Pipe()
		written := make(chan error)
		go func() {
			err := exact.WriteJSON(out, all(requests))
			out.CloseWithError(err)
			written <- err
		}()
		defer func() {
			if err := <-written; err != nil {
				t.Error(err)
			}
		}()
		log = stdin(t, in)
	} else if log, err = accesslog.Open([]string{path}, accesslog.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, w := range verify(t, log, all(requests), by, exact.NewThreshold(n, d)) {
		t.Error(w)
	}
}

// The log in the repository.
func TestDemoLog(t *testing.T) {
	got := collect{t: t}
	summary, err := Run(t.Context(), Config{Rules: testRules(t, "cik", exact.NewThreshold(20, time.Second), nil), Log: stdin(t, bytes.NewReader(data.EDGAR)), OnEvent: got.add})
	if err != nil {
		t.Fatal(err)
	}
	want := Summary{Event: "summary", Requests: 9925, Keys: 2402, Hot: 6, Seconds: 27}
	if summary != want {
		t.Errorf("%+v, want %+v", summary, want)
	}
	if e := got.events[0]; e.Event != "hot" || e.Rule != "replay" || e.Low < 20 || e.Rate != float64(e.Low) || e.High == nil || *e.High < e.Low {
		t.Errorf("first event %+v", e)
	}
}

// randomRequests draws bursts of a few keys with pauses between, in order, so that keys heat,
// cool and heat again.
func randomRequests(t *rapid.T) []exact.TraceRequest {
	var requests []exact.TraceRequest
	at := time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC).UnixNano() + rapid.Int64Range(0, 2e9).Draw(t, "start")
	grain := rapid.SampledFrom([]int64{1, 1e3, 1e6, 1e9}).Draw(t, "grain") // whole seconds, as most logs, or finer
	for range rapid.IntRange(1, 12).Draw(t, "bursts") {
		key := rapid.SampledFrom([]string{"/s?q=a", "/s?q=b&q=b", "/%73?q=a&p=1", "/t", "/s?p=2&q=%61&token=7",
			"/s?q=a&q=c&p=1&p=2&p=3", "/s?q=1&q=2&q=3&q=4&q=5&q=6&q=7&q=8&q=9&q=a&%20password=1", "/s?q=~more&code=1&zip_code=2"}).Draw(t, "key")
		spread := rapid.Int64Range(0, 3e8).Draw(t, "spread")
		for range rapid.IntRange(1, 40).Draw(t, "length") {
			requests = append(requests, exact.TraceRequest{At: at / grain * grain, Method: "GET", Target: key})
			at += spread
		}
		at += rapid.SampledFrom([]int64{0, 1, 5e7, 1e9, 9e9, 1e10, 11e9, 65e9, 4e12}).Draw(t, "pause")
	}
	return requests
}

func randomThreshold(t *rapid.T) exact.ThresholdSpec {
	d := rapid.SampledFrom([]time.Duration{time.Second, 1500 * time.Millisecond, 7 * time.Second, 10 * time.Second, 15 * time.Second, time.Minute, time.Hour}).Draw(t, "window")
	th := exact.NewThreshold(rapid.Int64Range(1, 30).Draw(t, "n"), d)
	th.Hold = rapid.SampledFrom([]time.Duration{0, time.Second, 10 * time.Second}).Draw(t, "hold")
	th.Exit = exact.Ratio{Num: rapid.Int64Range(1, th.N).Draw(t, "exit"), Den: th.N}
	return th
}

// For any log, a key that must be hot is hot from its crossing, one that cannot be is not, and
// each cools when it must.
func TestRandomLogs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		requests, th := randomRequests(t), randomThreshold(t)
		by := rapid.SampledFrom([]string{"all", "each", "q", "q,p"}).Draw(t, "by")
		log := stdin(t, bytes.NewReader(jsonLog(t, requests)))
		if wrong := verify(t, log, all(requests), by, th); len(wrong) > 0 {
			t.Fatalf("%+v\n%s", th, strings.Join(wrong, "\n"))
		}
	})
}

// Requests replayed as they arrive may be out of order. Each one that is too late for its window
// is counted as late, and no key is hot that did not reach the threshold in true time.
func TestUnsortedLogs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	rapid.Check(t, func(t *rapid.T) {
		requests, th := randomRequests(t), randomThreshold(t)
		for i := range requests { // each may be moved some places forward
			j := min(len(requests)-1, i+rapid.IntRange(0, 30).Draw(t, "move"))
			requests[i], requests[j] = requests[j], requests[i]
		}
		counter := exact.NewCounter(exact.RuleSpec{Hot: []exact.ThresholdSpec{th}})
		for _, r := range requests {
			for _, key := range exact.Keys("all", r.Method, r.Target) {
				counter.Add(r.At, key, 1)
			}
		}
		got := collect{t: t}
		log := stdinBy(t, bytes.NewReader(jsonLog(t, requests)), -1)
		summary, err := Run(context.Background(), Config{Rules: testRules(t, "all", th, nil), Log: log, OnEvent: got.add})
		if err != nil {
			t.Fatal(err)
		}
		want := counter.Result()
		if wrong := want.False(exact.HotKeys(got.exact())); len(wrong) > 0 {
			t.Fatalf("%+v: hot without reason: %q", th, wrong)
		}
		for _, e := range got.events {
			if e.Event == "hot" && e.Low < th.N {
				t.Fatalf("hot with a low of %d: %+v", e.Low, e)
			}
		}
		if least, most := tooLate(requests, th.D, 2), tooLate(requests, th.D, 0); summary.Late < least || summary.Late > most {
			t.Fatalf("%d late, want %d to %d", summary.Late, least, most)
		}
		if summary.Requests != int64(len(requests)) || summary.Seconds < 0 {
			t.Fatalf("%+v", summary)
		}
	})
}

// tooLate returns how many requests are later than a window, two seconds and some panes behind
// the newest before them.
func tooLate(requests []exact.TraceRequest, d time.Duration, panes int64) (late int64) {
	pane := max(int64(100*time.Millisecond), int64(d)/60)
	kept := int64(d)/pane + (int64(2*time.Second)+pane-1)/pane + panes
	newest := requests[0].At
	for _, r := range requests {
		newest = max(newest, r.At)
		if r.At/pane <= newest/pane-kept {
			late++
		}
	}
	return late
}

// All requests of one instant are one count, however many there are.
func TestManyRequestsOfOneSecond(t *testing.T) {
	var requests []exact.TraceRequest
	for second := range int64(3) {
		for i := range 5000 {
			requests = append(requests, exact.TraceRequest{At: (1_700_000_000 + second) * 1e9, Method: "GET", Target: fmt.Sprintf("/s?q=%d", i%50)})
		}
	}
	th := exact.NewThreshold(20, time.Second)
	for _, w := range verify(t, stdin(t, bytes.NewReader(jsonLog(t, requests))), all(requests), "q", th) {
		t.Error(w)
	}
}

// A key that is hot in the very first instant cools in its time.
func TestHotAtOnce(t *testing.T) {
	var requests []exact.TraceRequest
	for range 10 {
		requests = append(requests, exact.TraceRequest{At: 1_700_000_000e9, Method: "GET", Target: "/s?q=1"})
	}
	requests = append(requests, exact.TraceRequest{At: 1_700_000_060e9, Method: "GET", Target: "/s"})
	requests = append(requests, exact.TraceRequest{At: 1_700_000_090e9, Method: "GET", Target: "/s"})
	for _, w := range verify(t, stdin(t, bytes.NewReader(jsonLog(t, requests))), all(requests), "q", exact.NewThreshold(5, time.Second)) {
		t.Error(w)
	}
}

// Further values of a parameter hide no key: each value has a key of its own, and in a share a
// request with several values counts once.
func TestRepeatedParametersEvadeNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	var requests []exact.TraceRequest
	for i := range 600 {
		at := int64(1_700_000_000)*int64(time.Second) + int64(i)*int64(time.Second)/300
		target := fmt.Sprintf("/s?q=phone&q=%d", i)
		if i%3 == 0 {
			for j := range 12 {
				target += fmt.Sprintf("&q=%d-%d", i, j)
			}
		}
		requests = append(requests, exact.TraceRequest{At: at, Method: "GET", Target: target})
	}
	for _, test := range []struct{ by, hot, want string }{
		{"[q]", "150/s", "GET /s?q=phone"},
		{"each", "150/s", "GET /s?q=phone"},
		{"{combinations: [q]}", "150/s", "GET /s?q=phone"},
		{"[q]", "{share: 60%, min: 50/s}", "GET /s?q=phone"}, // of two thirds of the requests
		{"each", "{share: 60%, min: 50/s}", "GET /s?q=phone"},
		{"[q]", "{share: 30%, min: 50/s}", "GET /s?q=phone GET /s?~more"},
		{"[q]", "{share: 35%, min: 50/s}", "GET /s?q=phone"},
	} {
		file, err := config.Parse("rules.yaml", []byte(fmt.Sprintf("namespace: shop\nrules:\n  - {id: r, match: {route: \"*\"}, by: %s, hot: %s}\n", test.by, test.hot)))
		if err != nil {
			t.Fatal(err)
		}
		got := collect{t: t}
		summary, err := Run(t.Context(), Config{Rules: file.Rules, Log: stdin(t, bytes.NewReader(jsonLog(t, requests))), OnEvent: got.add})
		if err != nil {
			t.Fatal(err)
		}
		var hot []string
		for _, e := range got.events {
			if e.Event == "hot" {
				hot = append(hot, e.Key)
			}
		}
		if slices.Sort(hot); strings.Join(hot, " ") != test.want {
			t.Errorf("by %s, hot %s: %q, want %s; %+v", test.by, test.hot, hot, test.want, summary)
		}
		if test.by == "[q]" && summary.Keys != 200*8+400+2 {
			t.Errorf("%d keys", summary.Keys)
		}
	}
}

// Two runs give the same events, and a limit does not change which keys are hot.
func TestSameEachTime(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	run := func(limit *rules.Limit) ([]Event, Summary) {
		got := collect{t: t}
		th := exact.NewThreshold(10, time.Second)
		summary, err := Run(t.Context(), Config{Rules: testRules(t, "cik", th, limit), Log: stdin(t, bytes.NewReader(data.EDGAR)), OnEvent: got.add})
		if err != nil {
			t.Fatal(err)
		}
		return got.events, summary
	}
	limit := &rules.Limit{Quota: rules.Quota{Rate: rules.Rate{N: 5, Per: time.Second}, Burst: 5}, Mode: rules.ModeLimit}
	free, freeSummary := run(nil)
	events, summary := run(limit)
	again, summaryAgain := run(limit)
	if !reflect.DeepEqual(events, again) || summary != summaryAgain {
		t.Errorf("two runs differ: %+v, %+v", summary, summaryAgain)
	}
	if !reflect.DeepEqual(free, events) {
		t.Error("the limit changed what is hot")
	}
	if summary.Limited == 0 || freeSummary.Limited != 0 {
		t.Errorf("%d limited, without limit %d", summary.Limited, freeSummary.Limited)
	}
	shadow := *limit
	shadow.Mode = rules.ModeShadow
	if _, s := run(&shadow); s.Limited != summary.Limited {
		t.Errorf("%d limited in shadow, %d without", s.Limited, summary.Limited)
	}
}

// A limit is in force from the next multiple of 100 ms after the crossing, and lets its burst and
// its rate pass.
func TestLimited(t *testing.T) {
	var requests []exact.TraceRequest
	start := int64(1_700_000_000e9)
	for i := range int64(200) { // one each 10 ms, two seconds
		requests = append(requests, exact.TraceRequest{At: start + i*1e7, Method: "GET", Target: "/s?q=1"})
	}
	limit := &rules.Limit{Quota: rules.Quota{Rate: rules.Rate{N: 10, Per: time.Second}, Burst: 5}, Mode: rules.ModeLimit}
	summary, err := Run(t.Context(), Config{Rules: testRules(t, "q", exact.NewThreshold(50, time.Second), limit), Log: stdin(t, bytes.NewReader(jsonLog(t, requests)))})
	if err != nil {
		t.Fatal(err)
	}
	// The key is hot with the 50th request, at 490 ms, and limited from 500 ms on. Of 150
	// requests 5 pass at once, and after the first, one each 100 ms.
	if want := int64(150 - 5 - 14); summary.Limited != want {
		t.Errorf("%d limited, want %d", summary.Limited, want)
	}
}

// A replay does not wait for queued requests, and decides the limits of Redis itself, on the
// log's clock.
func TestLimitedInOtherWays(t *testing.T) {
	var requests []exact.TraceRequest
	start := int64(1_700_000_000e9)
	for i := range int64(200) {
		requests = append(requests, exact.TraceRequest{At: start + i*1e7, Method: "GET", Target: "/s?q=1"})
	}
	ten := rules.Rate{N: 10, Per: time.Second}
	for name, c := range map[string]struct {
		limit rules.Limit
		want  int64
	}{
		"exactly by all": {rules.Limit{Quota: rules.Quota{Algorithm: rules.SlidingLog, Rate: ten}, Mode: rules.ModeLimit, Scope: rules.ScopeExact}, 150 - 20},
		// From 500 to 1,990 ms: 10 at once, one each 100 ms, and those whose turn comes within
		// 500 ms.
		"by turns": {rules.Limit{Quota: rules.Quota{Rate: ten}, Mode: rules.ModeWait, Wait: 500 * time.Millisecond}, 150 - 10 - 14 - 5},
		"at once":  {rules.Limit{Mode: rules.ModeWait, Wait: time.Minute, Concurrency: 1}, 0},
	} {
		if c.limit.Concurrency == 0 {
			c.limit.Quota = c.limit.WithDefaults()
		}
		summary, err := Run(t.Context(), Config{Rules: testRules(t, "q", exact.NewThreshold(50, time.Second), &c.limit), Log: stdin(t, bytes.NewReader(jsonLog(t, requests)))})
		if err != nil || summary.Limited != c.want {
			t.Errorf("%s: %d limited, want %d; %v", name, summary.Limited, c.want, err)
		}
	}
}

func TestSpeed(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	start := int64(1_700_000_000e9)
	requests := []exact.TraceRequest{{At: start, Method: "GET", Target: "/s?q=1"}, {At: start + 10e9, Method: "GET", Target: "/s?q=1"},
		{At: start + 5e9, Method: "GET", Target: "/late"}, {At: start + 60e9, Method: "GET", Target: "/s?q=1"}}
	text := jsonLog(t, requests)
	config := func(t *testing.T, speed float64, got *collect) Config {
		return Config{Rules: testRules(t, "q", exact.NewThreshold(1, time.Second), nil), Log: stdin(t, bytes.NewReader(text)), Speed: speed, OnEvent: got.add}
	}
	for _, c := range []struct {
		speed float64
		want  time.Duration
	}{{0, 0}, {1, time.Minute}, {60, time.Second}, {0.5, 2 * time.Minute}, {1e12, 0}} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			got := collect{t: t}
			summary, err := Run(t.Context(), config(t, c.speed, &got))
			if err != nil || summary.Requests != 4 || summary.Seconds != 60 {
				t.Errorf("%v, %+v", err, summary)
			}
			if took := time.Since(began); took != c.want {
				t.Errorf("at speed %v it took %v, want %v", c.speed, took, c.want)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // so slow that no real clock could measure it
		ctx, cancel := context.WithTimeout(t.Context(), 1000*time.Hour)
		defer cancel()
		got := collect{t: t}
		summary, err := Run(ctx, config(t, 1e-12, &got))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, %+v", err, summary)
		}
		if len(got.events) != 1 || summary.Hot != 1 {
			t.Errorf("%+v, events %+v: want what was replayed until then", summary, got.events)
		}
	})
}

func TestRunRefuses(t *testing.T) {
	good := testRules(t, "q", exact.NewThreshold(1, time.Second), nil)
	log := stdin(t, strings.NewReader(""))
	bad := *good
	bad.Namespace = "no good"
	for name, c := range map[string]Config{
		"no rules": {Log: log}, "no log": {Rules: good}, "bad rules": {Rules: &bad, Log: log},
		"negative speed": {Rules: good, Log: log, Speed: -1}, "no number": {Rules: good, Log: log, Speed: nan()},
	} {
		if _, err := Run(t.Context(), c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Run(t.Context(), Config{Rules: good, Log: log}); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("an empty log: %v", err)
	}
}

func nan() float64 { zero := 0.0; return zero / zero }

func TestBadLines(t *testing.T) {
	text := string(jsonLog(t, []exact.TraceRequest{{At: 1_700_000_000e9, Method: "GET", Target: "/s?q=1"}})) + "nonsense\n"
	summary, err := Run(t.Context(), Config{Rules: testRules(t, "q", exact.NewThreshold(1, time.Second), nil), Log: stdin(t, strings.NewReader(text))})
	if err != nil || summary.Requests != 1 || summary.Skipped != 1 || summary.Hot != 1 {
		t.Errorf("%v, %+v", err, summary)
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	got := collect{t: t}
	c := Config{Rules: testRules(t, "cik", exact.NewThreshold(5, time.Second), nil), Log: stdin(t, bytes.NewReader(data.EDGAR))}
	c.OnEvent = func(e Event) { got.add(e); cancel() }
	summary, err := Run(ctx, c)
	if !errors.Is(err, context.Canceled) || summary.Requests == 0 || summary.Requests == 9925 || len(got.events) == 0 {
		t.Errorf("%v, %+v, %d events", err, summary, len(got.events))
	}
}

// The total is known from the start for files, which are read before they are replayed. Standard
// input is read during the replay.
func TestProgress(t *testing.T) {
	file := filepath.Join(t.TempDir(), "edgar.zst")
	if err := os.WriteFile(file, data.EDGAR, 0o600); err != nil {
		t.Fatal(err)
	}
	fromFile, err := accesslog.Open([]string{file}, accesslog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, log := range map[string]*accesslog.Log{"file": fromFile, "stdin": stdin(t, bytes.NewReader(data.EDGAR))} {
		c := Config{Rules: testRules(t, "cik", exact.NewThreshold(5, time.Second), nil), Log: log}
		last := int64(0)
		c.OnProgress = func(done, total int64) {
			if want := map[string]int64{"file": 9925, "stdin": done}[name]; done <= last || total != want {
				t.Errorf("%s: %d of %d after %d", name, done, total, last)
			}
			last = done
		}
		if _, err := Run(t.Context(), c); err != nil || last != 9925/progressEvery*progressEvery {
			t.Errorf("%s: %v, %d told", name, err, last)
		}
	}
}

func BenchmarkReplay(b *testing.B) {
	var requests int64
	for b.Loop() {
		summary, err := Run(b.Context(), Config{Rules: testRules(b, "cik", exact.NewThreshold(10, time.Second), nil), Log: stdin(b, bytes.NewReader(data.EDGAR))})
		if err != nil {
			b.Fatal(err)
		}
		requests += summary.Requests
	}
	b.ReportMetric(float64(requests)/b.Elapsed().Seconds(), "requests/s")
}

// BenchmarkReplayInstants measures a replay in which each request has an instant of its own, and
// so a flush of its own.
func BenchmarkReplayInstants(b *testing.B) {
	var requests []exact.TraceRequest
	for i := range int64(50_000) {
		requests = append(requests, exact.TraceRequest{At: 1_700_000_000e9 + i*1e5, Method: "GET", Target: fmt.Sprintf("/s?q=%d", i*i%9973)})
	}
	text := jsonLog(b, requests)
	n := 0
	for b.Loop() {
		if _, err := Run(b.Context(), Config{Rules: testRules(b, "q", exact.NewThreshold(1000, time.Second), nil), Log: stdin(b, bytes.NewReader(text))}); err != nil {
			b.Fatal(err)
		}
		n += len(requests)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "requests/s")
}
