package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/bench"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/testenv"
)

// benchOutput runs a command as a process, since measurements start it again, and returns
// the single line that it prints.
func benchOutput(t *testing.T, args string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes: left out with -short")
	}
	cmd := asProcess(t, append([]string{"bench"}, strings.Fields(args+" --json")...)...)
	cmd.Env = append(cmd.Env, "HOTPARAM_REDIS=")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), errs.String())
	}
	if errs.Len() > 0 {
		t.Errorf("stderr: %q, want none", errs.String())
	}
	if strings.Count(out.String(), "\n") != 1 {
		t.Errorf("stdout is not one line: %q", out.String())
	}
	return out.String()
}

// benchJSON returns the object that a command prints, which must have exactly these fields, all of
// them numbers.
func benchJSON(t *testing.T, args string, fields ...string) map[string]float64 {
	t.Helper()
	out := benchOutput(t, args)
	var object map[string]float64
	if err := json.Unmarshal([]byte(out), &object); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	slices.Sort(fields)
	if got := slices.Sorted(maps.Keys(object)); !slices.Equal(got, fields) {
		t.Errorf("fields %q, want %q", got, fields)
	}
	return object
}

func TestBenchRequest(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	var r bench.RequestResult
	d := json.NewDecoder(strings.NewReader(benchOutput(t, "request --rounds 1")))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		t.Fatal(err)
	}
	if r.FloorNS <= 0 || r.ColdNS <= 0 || r.HotNS <= 0 || r.FlushNS <= 0 || len(r.Cases) < 10 {
		t.Errorf("%+v", r)
	}
}

func TestBenchIngest(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	out := benchOutput(t, "ingest --rounds 1 --vs minimal --rate 0,2000 --readers 1")
	var r struct {
		Loads []map[string]any `json:"loads"`
	}
	loads := bench.IngestLoads([]int{0, 2000}, []int{1})
	if err := json.Unmarshal([]byte(out), &r); err != nil || len(r.Loads) != len(loads) {
		t.Fatalf("%v: %s", err, out)
	}
	for i, load := range loads {
		l := make(map[string]float64)
		for field, value := range r.Loads[i] {
			l[field], _ = value.(float64)
		}
		if r.Loads[i]["merged"] != load.Merged || l["packets_per_second"] != float64(load.Rate) || l["readers"] != 1 || l["lost"] < 0 {
			t.Errorf("load %d is %v", i, l)
		}
		for _, field := range []string{"lines_per_second", "lines_per_cpu_second", "minimal_lines_per_second", "minimal_lines_per_cpu_second", "ratio"} {
			if l[field] <= 0 {
				t.Errorf("%s is %v", field, l[field])
			}
		}
	}
	for _, bad := range []string{"--rate -1", "--readers 0", "--readers 65"} {
		hotparamCommand(t, append([]string{"bench", "ingest"}, strings.Fields(bad)...)...).exits(t, exitUsage, "want")
	}
}

var detectFields = []string{"precision", "recall", "missed_above_floor", "false_hot", "floor", "threshold", "bounds", "wrong_bounds", "cooled", "cooled_early", "cooled_late", "events_per_second", "memory_bytes"}

func TestBenchDetect(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	r := benchJSON(t, "detect --keys 1000 --events 20000 --windows 2 --threshold 100", detectFields...)
	if r["precision"] != 1 || r["recall"] != 1 || r["missed_above_floor"] != 0 || r["false_hot"] != 0 || r["floor"] != 0 || r["events_per_second"] <= 0 || r["memory_bytes"] <= 0 ||
		r["bounds"] <= 0 || r["wrong_bounds"] != 0 || r["cooled"] <= 0 || r["cooled_early"] != 0 || r["cooled_late"] != 0 {
		t.Error(r)
	}
	trace := filepath.Join("..", "internal", "demo", "data", "edgar-2017-06-30.access.log.zst")
	r = benchJSON(t, "detect --trace "+trace+" --by each --threshold 10", detectFields...)
	if r["precision"] != 1 || r["recall"] != 1 || r["bounds"] <= 0 || r["wrong_bounds"] != 0 || r["cooled_early"] != 0 || r["cooled_late"] != 0 {
		t.Error(r)
	}
}

func TestBenchDetectText(t *testing.T) {
	r := hotparamCommand(t, "bench", "detect", "--keys", "1000", "--events", "20000", "--windows", "1", "--threshold", "100")
	r.exits(t, exitOK)
	for _, want := range []string{"1 windows of 20,000 events", "precision  1.0000", "recall     1.0000", "and more"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("stdout does not have %q:\n%s", want, r.out)
		}
	}
	r = hotparamCommand(t, "bench", "detect", "--keys", "1000", "--events", "1000", "--windows", "1", "--zipf", "0")
	r.exits(t, exitOK)
	if !strings.Contains(r.out, "precision  -") || !strings.Contains(r.out, "no key is truly hot") {
		t.Errorf("of nothing hot:\n%s", r.out)
	}
	r = hotparamCommand(t, "bench", "detect", "--keys", "1000", "--events", "1000", "--windows", "1", "--zipf", "0", "--json")
	r.exits(t, exitOK)
	if !strings.Contains(r.out, `"precision":null`) {
		t.Errorf("of nothing hot:\n%s", r.out)
	}
}

func TestBenchEnforce(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	server := testenv.Redis(t)
	r := benchJSON(t, "enforce --instances 3 --samples 3 --spread zipf --redis "+server.URL(), "n", "p50_ms", "p99_ms", "max_ms")
	if r["n"] != 3 || r["p50_ms"] <= 0 || r["p50_ms"] > r["p99_ms"] || r["p99_ms"] > r["max_ms"] {
		t.Error(r)
	}
}

func TestBenchFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	server := testenv.Redis(t)
	args := "fleet --instances 2 --rate 1000/s --burst 200 --demand 1.5 --for 500ms --spread zipf --redis " + server.URL()
	got := hotparamCommand(t, append([]string{"bench"}, strings.Fields(args)...)...)
	got.exits(t, exitOK)
	for _, part := range []string{"1000/s with a burst of 200 over 2 instances", "Zipf's law", "1.5 ×", "scope: fleet", "scope: exact"} {
		if !strings.Contains(got.out, part) {
			t.Errorf("no %q in %s", part, got.out)
		}
	}
}

func TestBenchPipeline(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	server := testenv.Redis(t)
	for _, transport := range []string{"statsd", "kafka"} {
		r := benchJSON(t, "pipeline --rate 1000 --for 2s --instances 2 --transport "+transport+" --redis "+server.URL(),
			"events", "seconds", "events_per_second", "cpu_seconds", "lag_ms", "lost")
		if r["events"] < 2000 || r["seconds"] < 2 || r["events_per_second"] <= 0 || r["cpu_seconds"] <= 0 || r["lag_ms"] <= 0 || r["lost"] != 0 {
			t.Errorf("%s: %v", transport, r)
		}
	}
}

// The first SIGINT ends a measurement together with all its processes, and removes its data from
// Redis.
func TestBenchEndsWithASignal(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes: left out with -short")
	}
	server := testenv.Redis(t)
	client, err := hotkeys.NewClient(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	p := testenv.Start(t, asProcess(t, "bench", "enforce", "--instances", "3", "--samples", "10000", "--redis", server.URL()))
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if channels, err := client.PubSubChannels(t.Context(), "*").Result(); err == nil && len(channels) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no instance has subscribed")
		}
	}
	p.Signal(syscall.SIGINT)
	if code := p.Wait(); code != exitFailure || !strings.Contains(p.Stderr(), "hotparam: interrupted") || p.Stdout() != "" {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, p.Stdout(), p.Stderr())
	}
	if channels, err := client.PubSubChannels(t.Context(), "*").Result(); err != nil || len(channels) > 0 {
		t.Errorf("instances are still subscribed to %q, %v", channels, err)
	}
	if keys, err := client.Keys(t.Context(), "*").Result(); err != nil || len(keys) > 0 {
		t.Errorf("left in Redis: %q, %v", keys, err)
	}
}

func TestBenchUsage(t *testing.T) {
	t.Setenv("HOTPARAM_REDIS", "")
	for args, says := range map[string]string{
		"detect --memory 5":                       "--memory 5",
		"detect --threshold 0":                    "--threshold 0",
		"detect --window 10ms":                    "--window 10ms",
		"detect --zipf -1":                        "--zipf -1",
		"detect --zipf NaN":                       "--zipf NaN",
		"detect --keys 0":                         "--keys 0",
		"detect --events 0":                       "--events 0",
		"detect --by q":                           "--by goes with --trace",
		"detect --trace - --seed 2":               "--seed is for generated streams",
		"detect --trace - --by path:id":           "path",
		"detect --trace - --format xml":           "xml",
		"detect --trace - --format csv":           "want one of auto",
		"detect --trace /does/not/exist":          "/does/not/exist",
		"detect more":                             "is too much",
		"enforce --instances 0":                   "--instances 0",
		"enforce --samples 0":                     "--samples 0",
		"enforce --over 2s":                       "--over 2s",
		"enforce --spread none":                   "--spread",
		"enforce --redis http://localhost":        "redis URL",
		"fleet --instances 0":                     "--instances 0",
		"fleet --rate fast":                       "--rate fast",
		"fleet --burst 0":                         "--burst 0",
		"fleet --demand 0":                        "--demand 0",
		"fleet --demand NaN":                      "--demand NaN",
		"fleet --demand 100 --rate 1000000/s":     "at most 5000000",
		"fleet --spread none":                     "--spread",
		"fleet --for 0s":                          "--for 0s",
		"fleet --redis http://localhost":          "redis URL",
		"ingest --vs maximal":                     "--vs",
		"ingest --rounds 0":                       "--rounds 0",
		"request --rounds 0":                      "--rounds 0",
		"pipeline --transport udp":                "--transport",
		"pipeline --rate 0":                       "--rate 0",
		"pipeline --instances 0":                  "--instances 0",
		"pipeline --for 10ms":                     "--for 10ms",
		"pipeline --redis localhost":              "redis URL",
		"pipeline --brokers k1:9092":              "--transport kafka",
		"pipeline --transport kafka --brokers k1": "host:port",
		"part": "NAME is missing",
	} {
		t.Run(args, func(t *testing.T) {
			hotparamCommand(t, append([]string{"bench"}, strings.Fields(args)...)...).exits(t, exitUsage, says)
		})
	}
}

func TestBenchEnforceWithoutRedis(t *testing.T) {
	t.Setenv("HOTPARAM_REDIS", "")
	t.Setenv("PATH", t.TempDir())
	hotparamCommand(t, "bench", "enforce").exits(t, exitUnreachable, "no redis-server in PATH", "--redis")
	hotparamCommand(t, "bench", "enforce", "--redis", "redis://:geheim@127.0.0.1:1/0").exits(t, exitUnreachable, "is Redis running at")
	t.Setenv("HOTPARAM_REDIS", "redis://:geheim@127.0.0.1:1/0")
	if r := hotparamCommand(t, "bench", "enforce"); r.code != exitUnreachable || strings.Contains(r.err, "geheim") {
		t.Errorf("exit code %d, stderr %s", r.code, r.err)
	}
}

func TestBenchPipelineWithoutServers(t *testing.T) {
	url := testenv.Redis(t).URL()
	t.Setenv("HOTPARAM_REDIS", "")
	t.Setenv("PATH", t.TempDir())
	hotparamCommand(t, "bench", "pipeline").exits(t, exitUnreachable, "no redis-server in PATH", "--redis")
	hotparamCommand(t, "bench", "pipeline", "--transport", "kafka", "--brokers", "127.0.0.1:1", "--redis", url).
		exits(t, exitUnreachable, "is Kafka running at 127.0.0.1:1")
}
