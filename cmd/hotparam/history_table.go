package main

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/history"
	"github.com/hotparam/hotparam/cmd/internal/termtext"
	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// barWidth is the width of a bar.
const barWidth = 32

// maxHistoryRows is the number of keys in a table.
const maxHistoryRows = 30

// historyTable writes the keys that counted most, each with a line of bars, by rule.
func historyTable(w io.Writer, v *history.View) error {
	columns := int((v.To - v.From) / v.Step)
	fmt.Fprintln(w, historyHead(v))
	shown := slices.Clone(v.Rows[:min(len(v.Rows), maxHistoryRows)])
	for _, rest := range v.Rest {
		if len(rest.Cells) > 0 {
			rest.Route, rest.Key = "", "(all others)"
			shown = append(shown, rest)
		}
	}
	slices.SortStableFunc(shown, func(a, b history.Row) int { return cmp.Compare(a.Rule, b.Rule) })
	refused := knowsRefused(shown)
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "TOTAL\t%sMOST IN %s\tAT\t%s\tRULE\tKEY\n", onlyIf(refused, "REFUSED\t"), strings.ToUpper(columnWords(v.Step)), "COURSE"+strings.Repeat(" ", max(0, columns-len("COURSE"))))
	for i := range shown {
		r := &shown[i]
		sum, peak := r.Sum(), history.Cell{}
		for _, c := range r.Cells {
			if c.Low > peak.Low {
				peak = c
			}
		}
		at := time.Unix(v.From+int64(peak.Column)*v.Step, 0).Local().Format(historyForm(v))
		fmt.Fprintf(t, "%s\t%s%s\t%s\t%s\t%s\t%s\n", amounts(sum.Low, sum.High, r.Unit), onlyIf(refused, refusedWords(sum.Refused, r.Unit)+"\t"),
			hotwords.Count(peak.Low, r.Unit), at, course(r.Cells, columns, peak.Low), printable(r.Rule), printable(keyText(r)))
	}
	if more := len(v.Rows) - maxHistoryRows; more > 0 {
		fmt.Fprintf(t, "%s more; --json and --csv have them\n", hotwords.Plural(more, "key"))
	}
	if err := writeTrimmed(w, t, &text); err != nil {
		return err
	}
	return historyEvents(w, v)
}

// writeTrimmed writes a table without spaces at the ends of lines.
func writeTrimmed(w io.Writer, t *tabwriter.Writer, text *strings.Builder) error {
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

func onlyIf(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}

// knowsRefused reports whether a refused amount of some row is known.
func knowsRefused(rows []history.Row) bool {
	return slices.ContainsFunc(rows, func(r history.Row) bool {
		return slices.ContainsFunc(r.Cells, func(c history.Cell) bool { return c.Refused != published.Unknown })
	})
}

// historyOfKey writes a key column by column.
func historyOfKey(w io.Writer, v *history.View) error {
	form, refused := historyForm(v), knowsRefused(v.Rows)
	for i := range v.Rows {
		r := &v.Rows[i]
		fmt.Fprintf(w, "%s %s, %s\n", printable(r.Rule), printable(keyText(r)), historyHead(v))
		most := int64(1)
		for _, c := range r.Cells {
			most = max(most, c.Low)
		}
		var text strings.Builder
		t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		fmt.Fprintf(t, "TIME\tCOUNT\t%s\n", onlyIf(refused, "REFUSED\t"))
		next := 0
		for column := range int((v.To - v.From) / v.Step) {
			at := time.Unix(v.From+int64(column)*v.Step, 0).Local().Format(form)
			if next == len(r.Cells) || r.Cells[next].Column != column {
				words := "-" // it was not among the keys that count most
				if inGap(v, column) {
					words = "not written"
				}
				fmt.Fprintf(t, "%s\t%s\t%s\n", at, words, onlyIf(refused, "\t"))
				continue
			}
			c := r.Cells[next]
			next++
			fmt.Fprintf(t, "%s\t%s\t%s%s\n", at, amounts(c.Low, c.High, r.Unit), onlyIf(refused, refusedWords(c.Refused, r.Unit)+"\t"), termtext.Bar(c.Low, most, barWidth))
		}
		if err := writeTrimmed(w, t, &text); err != nil {
			return err
		}
	}
	return historyEvents(w, v)
}

// historyEvents writes the marks and gaps.
func historyEvents(w io.Writer, v *history.View) error {
	form := historyForm(v)
	at := func(second int64) string { return time.Unix(second, 0).Local().Format(form) }
	const most = 40
	for i, m := range v.Marks {
		if i == most {
			fmt.Fprintf(w, "%s more; --json has them\n", hotwords.Plural(len(v.Marks)-most, "event"))
			break
		}
		words := m.Words
		if m.Text != "" {
			words = m.Rule + " " + m.Text + ": " + words
		}
		fmt.Fprintf(w, "%s  %-7s  %s\n", at(m.At), m.Kind, printable(words))
	}
	for _, g := range v.Gaps {
		if _, err := fmt.Fprintf(w, "%s to %s: nothing was written\n", at(g[0]), at(g[1])); err != nil {
			return err
		}
	}
	return nil
}

func inGap(v *history.View, column int) bool {
	from := v.From + int64(column)*v.Step
	for _, g := range v.Gaps {
		if g[0] <= from && from+v.Step <= g[1] {
			return true
		}
	}
	return false
}

func historyHead(v *history.View) string {
	at := func(second int64) string { return time.Unix(second, 0).Local().Format(time.DateTime) }
	return fmt.Sprintf("%s to %s, in columns of %s", at(v.From), at(v.To), columnWords(v.Step))
}

func columnWords(step int64) string { return hotwords.Span(time.Duration(step) * time.Second) }

// historyForm returns the form of a column's time.
func historyForm(v *history.View) string {
	switch {
	case v.To-v.From > 20*3600:
		return "01-02 15:04"
	case v.Step%60 == 0:
		return "15:04"
	}
	return time.TimeOnly
}

func keyText(r *history.Row) string {
	if r.Route == "" {
		return r.Key
	}
	return r.Route + "?" + r.Key
}

// amounts formats bounds: "120", "120–150", or "120+" if the upper one is not known.
func amounts(low, high int64, unit rules.Unit) string {
	words := hotwords.Count(low, unit)
	switch {
	case high == published.Unknown:
		return words + "+"
	case high > low:
		return words + "–" + hotwords.Count(high, unit)
	}
	return words
}

func refusedWords(n int64, unit rules.Unit) string {
	if n == published.Unknown {
		return ""
	}
	return hotwords.Count(n, unit)
}

// course draws the amounts of columns in characters of eight heights.
func course(cells []history.Cell, columns int, most int64) string {
	line := []rune(strings.Repeat("·", columns))
	for _, c := range cells {
		if c.Column < columns && c.Low > 0 {
			line[c.Column] = []rune("▁▂▃▄▅▆▇█")[max(0, (c.Low*8-1)/max(1, most))]
		}
	}
	return string(line)
}

// historyCSV writes one line for each key and column. The rest of a rule has no key.
func historyCSV(w io.Writer, v *history.View) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"time", "rule", "route", "key", "unit", "low", "high", "refused"}) // Flush has the error
	number := func(n int64) string {
		if n == published.Unknown {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	for _, rows := range [][]history.Row{v.Rows, v.Rest} {
		for i := range rows {
			r := &rows[i]
			for _, c := range r.Cells {
				at := time.Unix(v.From+int64(c.Column)*v.Step, 0).UTC().Format(time.RFC3339)
				_ = out.Write([]string{at, r.Rule, csvText(r.Route), csvText(r.Key), r.Unit.String(), number(c.Low), number(c.High), number(c.Refused)})
			}
		}
	}
	out.Flush()
	return out.Error()
}

// csvText returns a text that spreadsheets do not take for a formula.
func csvText(s string) string {
	s = printable(s)
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}
