package replay

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hotparam/hotparam/cmd/internal/termtext"
	"github.com/hotparam/hotparam/internal/hotwords"
)

const (
	// maxRows is the maximal number of rows of the table of panes, barWidth the width of its
	// bars.
	maxRows  = 44
	barWidth = 32
)

// paneTable writes the counts of a key pane by pane. It shows the panes around each decision and
// around the highest count, and folds the others.
func paneTable(w io.Writer, t *Trial, c timeLayout) error {
	if len(t.Panes) == 0 {
		return nil
	}
	var rows []paneRow
	for around := 3; ; around-- {
		if rows = fold(t, around); len(rows) <= maxRows || around == 0 {
			break
		}
	}
	highest := int64(1)
	for i := range t.Panes {
		highest = max(highest, t.Panes[i].Low)
		if e := t.Panes[i].Enter; e != nil && *e < 4*highest { // a mark farther off would make all bars short
			highest = max(highest, *e)
		}
	}
	width := len("WINDOW")
	for i := range rows {
		if r := &rows[i]; r.n == 1 {
			width = max(width, len(r.window()))
		}
	}
	fmt.Fprintf(w, "  %-*s  %7s  %*s\n", len(c.layout), "PANE (UTC)", "COUNT", width, "WINDOW")
	for i := range rows {
		r := &rows[i]
		if i == maxRows/2 && len(rows) > maxRows {
			fmt.Fprintf(w, "  ⋮ %d rows more; --json has every pane\n", len(rows)-maxRows)
		}
		if len(rows) > maxRows && i >= maxRows/2 && i < len(rows)-maxRows/2 {
			continue
		}
		if r.n > 1 {
			fmt.Fprintf(w, "  ⋮ %s\n", r.summary())
			continue
		}
		line := fmt.Sprintf("  %-*s  %7d  %*s  %s", len(c.layout), c.time(r.Time), r.Counted, width, r.window(), r.bar(highest))
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	if t.Omitted > 0 {
		fmt.Fprintf(w, "  and %d panes after these\n", t.Omitted)
	}
	return nil
}

// paneRow is one pane, or several panes folded into one row.
type paneRow struct {
	Pane
	n       int
	pane    time.Duration
	counted int64
	lowest  int64 // lowest and highest of the low counts of the window
	highest int64
	hot     bool // whether all of them are hot
}

// fold returns the rows for the panes of t. It keeps that many panes around each decision, but
// folds those that show no change: without counts, and with the window of both neighbours.
func fold(t *Trial, around int) []paneRow {
	pane := time.Duration(t.Pane * float64(time.Second))
	shown := make([]bool, len(t.Panes))
	show := func(i int) {
		for j := max(0, i-around); j <= min(len(shown)-1, i+around); j++ {
			shown[j] = true
		}
	}
	peak, step := 0, 0
	for i := range t.Panes {
		p := &t.Panes[i]
		if p.Low > t.Panes[peak].Low {
			peak = i
		}
		if i == 0 || i == len(t.Panes)-1 || p.Hot != t.Panes[i-1].Hot {
			show(i)
		}
		for ; step < len(t.Steps) && t.Steps[step].Time.Before(p.Time.Add(pane)); step++ {
			show(i)
		}
	}
	show(peak)
	for i := 1; i < len(shown)-1; i++ {
		if p := &t.Panes[i]; p.Counted == 0 && sameState(p, &t.Panes[i-1]) && sameState(p, &t.Panes[i+1]) {
			shown[i] = false
		}
	}
	for from, i := 0, 0; i < len(shown); i++ { // a gap of one or two panes is shown: a folded row would not be shorter
		switch {
		case shown[i]:
			from = i + 1
		case i-from < 2 && i+1 < len(shown) && shown[i+1]:
			for j := from; j <= i; j++ {
				shown[j] = true
			}
		}
	}
	var rows []paneRow
	for i := range t.Panes {
		p := &t.Panes[i]
		if last := len(rows) - 1; last >= 0 && !shown[i] && rows[last].n > 0 && i > 0 && !shown[i-1] && rows[last].hot == p.Hot {
			r := &rows[last]
			r.n++
			r.counted += p.Counted
			r.lowest, r.highest = min(r.lowest, p.Low), max(r.highest, p.Low)
			continue
		}
		rows = append(rows, paneRow{Pane: *p, n: 1, pane: pane, counted: p.Counted, lowest: p.Low, highest: p.Low, hot: p.Hot})
	}
	return rows
}

// sameState reports whether two panes would look the same.
func sameState(a, b *Pane) bool { return a.Low == b.Low && a.Hot == b.Hot }

// window returns the count in the window: its bounds if they differ, and "+?" after the lower one
// if the upper one is not known.
func (r *paneRow) window() string {
	low := strconv.FormatInt(r.Low, 10)
	switch {
	case r.High == nil:
		return low + "+?"
	case *r.High > r.Low:
		return low + "–" + strconv.FormatInt(*r.High, 10)
	}
	return low
}

// bar draws the count in the window, ┊ at the count from which the key is hot, and "hot" if it is.
func (r *paneRow) bar(peak int64) string {
	bar := termtext.Bar(r.Low, peak, barWidth)
	if r.Enter != nil && *r.Enter <= peak {
		column := int(*r.Enter * barWidth / peak)
		if n := utf8.RuneCountInString(bar); n < column {
			bar += strings.Repeat(" ", column-n) + "┊"
		}
	}
	if r.Hot {
		bar += strings.Repeat(" ", max(0, barWidth+2-utf8.RuneCountInString(bar))) + "hot"
	}
	return bar
}

// summary describes folded panes.
func (r *paneRow) summary() string {
	window := strconv.FormatInt(r.lowest, 10)
	if r.highest > r.lowest {
		window += " to " + strconv.FormatInt(r.highest, 10)
	}
	counted := "nothing"
	if r.counted > 0 {
		counted = strconv.FormatInt(r.counted, 10)
	}
	text := fmt.Sprintf("%d panes, %s: %s counted, %s in the window", r.n, hotwords.Seconds((time.Duration(r.n) * r.pane).Seconds()), counted, window)
	if r.hot {
		text += ", hot"
	}
	return text
}
