package accesslog

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The log that the demo ships is in order, so it needs no sorting.
func TestDemoLog(t *testing.T) {
	got, stats, err := drain(t, []string{"../../cmd/internal/demo/data/edgar-2017-06-30.access.log.zst"}, Options{})
	if err != nil || stats.Good != 9925 || stats.Bad != 0 {
		t.Fatalf("%v, %+v", err, stats)
	}
	if !slices.IsSortedFunc(got, func(a, b Entry) int { return a.Time.Compare(b.Time) }) {
		t.Error("not in order")
	}
	if span := got[len(got)-1].Time.Sub(got[0].Time); span != 27*time.Second {
		t.Errorf("it spans %s, want 28 whole seconds", span)
	}
	for _, e := range got {
		if e.Method != "GET" || !strings.HasPrefix(e.Target, "/Archives/edgar/data?cik=") || e.Addr == "" {
			t.Fatalf("%+v", e)
		}
	}
}

// Real logs, which are not in the repository.
func TestRealLogs(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "shared", "data")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the folder shared/data beside the repository, with the real logs, is not there")
	}
	for _, c := range []struct {
		name      string
		good, bad int64
		span      time.Duration
	}{
		{"edgar-2017-06-30.access.log.zst", 9_925, 0, 27 * time.Second},
		{"higgs-2012-07-01.access.log.zst", 204_048, 0, 291_427 * time.Second},
		{"dns-2018-03-24.access.jsonl.zst", 53_615, 0, 1_270 * time.Second},
		{"semicomplete-apache_logs.log.zst", 10_000, 0, 298_859 * time.Second},
		{"scan-acunetix.log.zst", 6_538, 1, 1_722 * time.Second}, // one request has no target; the last line has no end
	} {
		t.Run(c.name, func(t *testing.T) {
			got, stats, err := drain(t, []string{filepath.Join(dir, c.name)}, Options{})
			if err != nil || stats.Good != c.good || stats.Bad != c.bad {
				t.Fatalf("%v, %+v; want %d good, %d bad", err, stats, c.good, c.bad)
			}
			if !slices.IsSortedFunc(got, func(a, b Entry) int { return a.Time.Compare(b.Time) }) {
				t.Error("not in order")
			}
			if span := got[len(got)-1].Time.Truncate(time.Second).Sub(got[0].Time.Truncate(time.Second)); span != c.span {
				t.Errorf("it spans %s, want %s", span, c.span)
			}
		})
	}
}
