// Package metricpage writes the tables of METRICS.md from the declarations of the metrics, so
// that the meaning of a metric is written once, next to the code that reads it.
package metricpage

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hotparam/hotparam/internal/figure"
)

// MetricRow is one metric of a table.
type MetricRow struct {
	Name   string
	Labels []string // in any order
	Kind   string   // counter, gauge or histogram
	Help   string   // help text of /metrics: a sentence, after DataLoss if the metric counts losses
	// Meaning replaces Help unless it is "". It is Markdown, without an initial capital or a full
	// stop.
	Meaning string
}

// Rows returns the rows of a table of metrics.
func Rows[S any](table []figure.Figure[S]) (rows []MetricRow) {
	for i := range table {
		f := &table[i]
		rows = append(rows, MetricRow{Name: f.Name, Labels: f.Labels, Kind: kinds[f.Kind], Help: f.Help, Meaning: f.Meaning})
	}
	return rows
}

var kinds = map[prometheus.ValueType]string{
	prometheus.CounterValue: "counter", prometheus.GaugeValue: "gauge", prometheus.UntypedValue: "histogram",
}

// DataLoss begins the help of a metric that counts lost data.
const DataLoss = "DATA LOSS: "

// Table returns the rows as a Markdown table, in their order.
func Table(rows []MetricRow) string {
	var b strings.Builder
	b.WriteString("| metric | type | meaning |\n| --- | --- | --- |\n")
	for _, r := range rows {
		name := r.Name
		if len(r.Labels) > 0 {
			name += "{" + strings.Join(slices.Sorted(slices.Values(r.Labels)), ",") + "}"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, r.Kind, r.meaning())
	}
	return b.String()
}

func (r MetricRow) meaning() string {
	help, lost := strings.CutPrefix(r.Help, DataLoss)
	text := r.Meaning
	if text == "" {
		first, size := utf8.DecodeRuneInString(help)
		text = string(unicode.ToLower(first)) + strings.TrimSuffix(help[size:], ".")
	}
	if lost {
		text = "**data loss**: " + text
	}
	return text
}

// Replace returns page with table in place of the text between the marks of section. The marks
// are comments, on lines of their own:
//
//	<!-- made by "make metrics": SECTION -->
//	<!-- end -->
func Replace(page, section, table string) (string, error) {
	begin, end := fmt.Sprintf("<!-- made by \"make metrics\": %s -->\n", section), "<!-- end -->"
	before, tail, ok := strings.Cut(page, begin)
	if !ok {
		return "", fmt.Errorf("the page has no line %q", strings.TrimSpace(begin))
	}
	_, after, ok := strings.Cut(tail, end)
	if !ok {
		return "", fmt.Errorf("nothing ends section %q", section)
	}
	return before + begin + table + end + after, nil
}

// ErrStale is returned by [Sync] if a page differs from the declarations in the code.
var ErrStale = errors.New(`not up to date: run "make metrics"`)

// Sync compares the sections of the page at path with tables, which is keyed by section. If they
// differ, it writes the page if write is set, and returns [ErrStale] otherwise.
func Sync(path string, tables map[string][]MetricRow, write bool) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	page := string(data)
	for section, rows := range tables {
		if page, err = Replace(page, section, Table(rows)); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	switch {
	case page == string(data):
		return nil
	case !write:
		return fmt.Errorf("%s is %w%s", path, ErrStale, firstDifference(string(data), page))
	}
	return os.WriteFile(path, []byte(page), 0o644)
}

// firstDifference describes, for an error, the first line of want that is missing in old.
func firstDifference(old, want string) string {
	have := make(map[string]bool)
	for line := range strings.Lines(old) {
		have[line] = true
	}
	for line := range strings.Lines(want) {
		if !have[line] {
			return "; it lacks\n" + strings.TrimSpace(line)
		}
	}
	return "; it has extra lines, or another order"
}
