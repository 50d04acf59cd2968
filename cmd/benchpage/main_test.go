package main

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/hotparam/hotparam/checks/bench/chart"
	"github.com/hotparam/hotparam/cmd/internal/bench"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/internal/yardstick"
)

// TestMain also serves as the program whose parts the test starts.
func TestMain(m *testing.M) {
	logging.Disable()
	if len(os.Args) == 3 && os.Args[1] == "part" {
		if err := bench.RunPart(context.Background(), os.Args[2], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(testenv.Main(m))
}

func TestPageOfASmallPlan(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes: left out with -short")
	}
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("no redis-server in PATH (Debian: apt-get install redis-server)")
	}
	dir := t.TempDir()
	p := plan{
		command:   []string{os.Args[0], "part"},
		request:   bench.RequestConfig{Rounds: 1, Slice: time.Millisecond},
		ingest:    bench.IngestConfig{Rounds: 1, Slice: 50 * time.Millisecond, Loads: bench.IngestLoads([]int{0, 2000}, []int{1})},
		exponents: []float64{1, 1.4}, memories: []int64{1, 2},
		windows: 1, events: 5000, keys: 1000, threshold: 100,
		instances: 2, samples: 2,
		pipeline: bench.PipelineConfig{Rate: 2000, For: time.Second, Instances: 2}, rounds: 1,
	}
	if err := run(t.Context(), p, dir); err != nil {
		t.Fatal(err)
	}
	text := testenv.ReadFile(t, filepath.Join(dir, "BENCH.md"))
	for _, want := range []string{time.Now().UTC().Format(time.DateOnly)[:7], "Go 1.", "Redis ", "| 1.4 | 2 MB |", "| urgent, Zipf 1 |", "| each 100 ms, even |", "| Kafka |"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	for _, bad := range []string{"NaN", "%!", "Inf"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page has %q:\n%s", bad, text)
		}
	}
	pictures, err := filepath.Glob(filepath.Join(dir, "images", "*.svg"))
	if err != nil || len(pictures) != 6 {
		t.Fatalf("pictures %q, %v", pictures, err)
	}
	for _, name := range pictures {
		if !strings.Contains(text, "(images/"+filepath.Base(name)+")") {
			t.Errorf("%s is not on the page", name)
		}
		picture := testenv.ReadFile(t, name)
		mustBeSound(t, picture)
	}
}

// mustBeSound checks that a picture is XML without impossible numbers.
func mustBeSound(t *testing.T, picture string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(picture)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, picture)
		}
	}
	if strings.Contains(picture, "NaN") || strings.Contains(picture, "Inf") {
		t.Errorf("impossible numbers in\n%s", picture)
	}
}

func TestGoalsThatAreMissedAreMarked(t *testing.T) {
	one := 1.0
	p := full(nil)
	good := figures{
		Request:  paid(1.6, 2.5, 8, 3),
		Ingest:   ingested(1.4, 2.5),
		Detect:   []detected{{Zipf: 1, Memory: 1, DetectResult: bench.DetectResult{Precision: &one}}},
		Enforce:  []enforced{{Urgent: true, EnforceResult: bench.EnforceResult{P99MS: 25}}, {EnforceResult: bench.EnforceResult{P99MS: 120}}},
		Pipeline: chains(1.5, 0),
	}
	marks := func(f figures) int { return strings.Count(page(yardstick.Machine{}, p, f), "◄") - 1 } // the legend has one
	if n := marks(good); n != 0 {
		t.Errorf("%d marks where all goals are reached", n)
	}
	bad := figures{
		Request:  paid(1.61, 2.52, 8.1, 3),
		Ingest:   ingested(1.3, 2.4),
		Detect:   []detected{{Zipf: 1, Memory: 1, DetectResult: bench.DetectResult{MissedAboveFloor: 1, FalseHot: 1}}},
		Enforce:  []enforced{{Urgent: true, EnforceResult: bench.EnforceResult{P99MS: 26}}, {EnforceResult: bench.EnforceResult{P99MS: 121}}},
		Pipeline: chains(1.6, 1),
	}
	want := 10 // requests 4, detection, enforcement and pipelines 2 each
	for _, l := range bench.IngestLoads(nil, nil) {
		if l.Readers == 1 && (l.Rate == 0 || l.Rate == 50_000) {
			want++
		}
	}
	lavish := good
	lavish.Request = paid(1.6, 2.5, 8, 4)
	if n := marks(lavish); n != 1 {
		t.Errorf("%d marks for an answer that allocates too much", n)
	}
	if n := marks(bad); n != want {
		t.Errorf("%d marks, want %d", n, want)
	}
}

// paid returns the costs of requests that are not hot, hot and answered, as multiples of the
// floor, and the allocations of an answer.
func paid(cold, hot, answered, allocs float64) bench.RequestResult {
	return bench.RequestResult{FloorNS: 40, Cases: []bench.RequestCost{
		{Name: bench.CaseCold, Floors: cold}, {Name: bench.CasePassed, Floors: hot}, {Name: bench.CaseRefused, Floors: hot},
		{Name: bench.CaseAnswered, Floors: answered, Allocs: allocs}, {Name: "escaped", Floors: 9},
	}}
}

// ingested returns the default loads, with these ratios at flood and at 50,000 packets a second.
func ingested(flood, brisk float64) (r bench.IngestResult) {
	for _, l := range bench.IngestLoads(nil, nil) {
		ratio := map[int]float64{0: flood, 50_000: brisk}[l.Rate]
		r.Loads = append(r.Loads, bench.IngestFigures{IngestLoad: l, Minimal: &bench.Minimal{Ratio: ratio}})
	}
	return r
}

// chains returns three runs over each transport. Each run over UDP takes one processor second.
// Those over Kafka take kafka seconds, except for one disturbed run.
func chains(kafka float64, lost int64) []pipelined {
	run := func(cpu float64) bench.PipelineResult { return bench.PipelineResult{CPUSeconds: cpu} }
	last := run(kafka)
	last.Lost = lost
	return []pipelined{
		{bench.TransportStatsD, []bench.PipelineResult{run(1), run(1), run(1)}},
		{bench.TransportKafka, []bench.PipelineResult{run(kafka), run(7), last}},
	}
}

func TestTicks(t *testing.T) {
	for _, most := range []float64{0.001, 0.3, 1, 7, 12, 99, 120, 132, 5_000_000} {
		values := chart.Ticks(most)
		last := values[len(values)-1]
		if values[0] != 0 || last < most*(1-1e-9) || last > 2*most || len(values) > 6 || math.IsNaN(last) {
			t.Errorf("up to %v: %v", most, values)
		}
	}
}
