package metricpage

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const page = `# Metrics

<!-- made by "make metrics": one -->
old
<!-- end -->

Words.

<!-- made by "make metrics": two -->
<!-- end -->
`

var rows = map[string][]MetricRow{
	"one": {
		{Name: "a_total", Kind: "counter", Help: "What came."},
		{Name: "b_total", Kind: "counter", Labels: []string{"rule", "decision"}, Help: "DATA LOSS: what is gone."},
	},
	"two": {{Name: "c", Kind: "gauge", Help: "DATA LOSS: what waits.", Meaning: "what waits: raise `x`"}},
}

const want = `# Metrics

<!-- made by "make metrics": one -->
| metric | type | meaning |
| --- | --- | --- |
| ` + "`a_total`" + ` | counter | what came |
| ` + "`b_total{decision,rule}`" + ` | counter | **data loss**: what is gone |
<!-- end -->

Words.

<!-- made by "make metrics": two -->
| metric | type | meaning |
| --- | --- | --- |
| ` + "`c`" + ` | gauge | **data loss**: what waits: raise ` + "`x`" + ` |
<!-- end -->
`

func TestSync(t *testing.T) {
	path := filepath.Join(t.TempDir(), "METRICS.md")
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Sync(path, rows, false); !errors.Is(err, ErrStale) || !strings.Contains(err.Error(), "it lacks") {
		t.Errorf("an old page: %v", err)
	}
	if err := Sync(path, rows, true); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
	if err := Sync(path, rows, false); err != nil {
		t.Errorf("a page just written: %v", err)
	}
	fewer := map[string][]MetricRow{"one": rows["one"][:1]}
	if err := Sync(path, fewer, false); !errors.Is(err, ErrStale) {
		t.Errorf("a metric that is gone: %v", err)
	}
	if err := Sync(path, map[string][]MetricRow{"three": nil}, true); err == nil {
		t.Error("a section that the page does not have was found")
	}
}
