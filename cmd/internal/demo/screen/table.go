package screen

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/demo"
	"github.com/hotparam/hotparam/cmd/internal/termtext"
	"github.com/hotparam/hotparam/internal/hotwords"
)

// column is a column of the table. A narrow terminal shows only the most important columns.
type column struct {
	title string
	width int
	rank  int // columns of lower rank are dropped later
	right bool
	cell  func(k demo.CountedKey, now time.Time) string
}

// Bounds of the widths of the flexible columns.
const (
	keyLeast, keyMost = 20, 60
	barLeast, barMost = 18, 36
)

// columns returns the columns to the right of the key. The bar's column has no cell function.
func columns() []column {
	return []column{
		{"RATE/S", 6, 0, true, func(k demo.CountedKey, _ time.Time) string { return fmt.Sprintf("%.0f", k.Rate) }},
		{"", barLeast, 2, false, nil},
		{"LIMIT", 5, 5, true, func(k demo.CountedKey, _ time.Time) string { return fmt.Sprintf("%d×%s", demo.Instances, k.Limit) }},
		{"PASSED", 6, 4, true, func(k demo.CountedKey, _ time.Time) string { return hotwords.Thousands(k.Passed) }},
		{"REFUSED", 7, 1, true, func(k demo.CountedKey, _ time.Time) string { return hotwords.Thousands(k.Refused) }},
		{"HOT FOR", 7, 3, true, func(k demo.CountedKey, now time.Time) string { return fmt.Sprintf("%.0fs", now.Sub(k.Since).Seconds()) }},
	}
}

// layout selects the columns that fit next to the key, and divides the remaining width between
// the key and the bar.
func layout(width, longest int) (key int, shown []column) {
	shown = columns()
	need := func() int {
		sum := 1 // margin
		for _, c := range shown {
			sum += 2 + c.width
		}
		return sum + 1
	}
	for len(shown) > 0 && need()+keyLeast > width {
		last := 0
		for i := range shown {
			if shown[i].rank > shown[last].rank {
				last = i
			}
		}
		shown = append(shown[:last], shown[last+1:]...)
	}
	spare := max(0, width-need()-keyLeast)
	key = min(keyLeast+spare, max(keyLeast, min(keyMost, longest)))
	spare -= key - keyLeast
	for i := range shown {
		if shown[i].cell == nil {
			shown[i].width += min(spare, barMost-barLeast)
		}
	}
	return min(key, max(1, width-2)), shown
}

// table shows the keys in at most height lines.
func (v *screenText) table(width, height int) []string {
	longest := 0
	for _, k := range v.now.Hot {
		longest = max(longest, len(k.Text))
	}
	for _, c := range v.cooled {
		longest = max(longest, len(c.Text))
	}
	key, shown := layout(width, longest)
	var lines []string
	add := func(line string) { lines = append(lines, termtext.Fit(line, width)) }
	add(termtext.Faint.Render(header(key, shown)))
	if len(v.now.Hot)+len(v.cooled) == 0 {
		add(termtext.Faint.Render(" nothing is hot yet"))
	}
	for _, k := range v.now.Hot {
		add(v.row(k, key, shown))
	}
	for _, c := range v.cooled {
		add(termtext.Faint.Render(cooledRow(c, key, shown)))
	}
	if height = max(1, height); len(lines) > height {
		more := len(lines) - height + 1
		lines = lines[:height-1]
		add(termtext.Faint.Render(fmt.Sprintf(" … and %d more", more)))
	}
	return lines
}

func header(key int, shown []column) string {
	cells := []string{termtext.Pad("KEY", key, false)}
	for _, c := range shown {
		title := c.title
		if c.cell == nil {
			title = scaleTitle(c.width)
		}
		cells = append(cells, termtext.Pad(title, c.width, c.right))
	}
	return " " + strings.Join(cells, "  ")
}

func (v *screenText) row(k demo.CountedKey, key int, shown []column) string {
	cells := []string{termtext.Pad(termtext.Shorten(termtext.Printable(k.Text), key), key, false)}
	for _, c := range shown {
		switch {
		case c.cell == nil:
			cells = append(cells, bar(k.Rate, c.width))
		case c.title == "REFUSED" && k.Refused > 0:
			cells = append(cells, termtext.Alarm.Render(termtext.Pad(c.cell(k, v.now.At), c.width, true)))
		default:
			cells = append(cells, termtext.Pad(c.cell(k, v.now.At), c.width, c.right))
		}
	}
	return " " + strings.Join(cells, "  ")
}

// cooledRow returns the row of a cooled key.
func cooledRow(c cooledKey, key int, shown []column) string {
	c.Rate = 0 // the last rate is old
	cells := []string{termtext.Pad(termtext.Shorten(termtext.Printable(c.Text), key), key, false)}
	for _, col := range shown {
		text := "cooled"
		if col.cell != nil {
			text = col.cell(c.CountedKey, c.cooled)
		}
		cells = append(cells, termtext.Pad(text, col.width, col.right))
	}
	return " " + strings.Join(cells, "  ")
}

// The bar's scale. The threshold is at a third of it, and the total rate that all instances pass
// is at half.
var (
	threshold = demo.Rules().Rules[0].Hot[0].Rate.PerSecond()
	passes    = demo.Instances * demo.Rules().Rules[0].Limit.Rate.PerSecond()
	fullScale = 2 * passes
)

// mark returns the index of the cell that holds a rate.
func mark(rate float64, width int) int { return int(rate / fullScale * float64(width)) }

// scaleTitle returns the bar's title, which labels its marks.
func scaleTitle(width int) string {
	title := termtext.Pad("", mark(threshold, width), false) + fmt.Sprintf("%.0f", threshold)
	title = termtext.Pad(title, mark(passes, width), false) + fmt.Sprintf("%.0f", passes)
	return title
}

// bar draws a rate: green up to the threshold, yellow up to the rate that passes, red beyond it,
// where requests are refused.
func bar(rate float64, width int) string {
	hot, full := mark(threshold, width), mark(passes, width)
	halves := int(math.Round(2 * min(rate/fullScale, 1) * float64(width)))
	var cells strings.Builder
	for from := 0; from < width; { // a run has a single color
		style, to := &termtext.Calm, hot
		switch {
		case 2*from+1 > halves:
			style, to = &termtext.Faint, width
		case from >= full:
			style, to = &termtext.Alarm, width
		case from >= hot:
			style, to = &termtext.Warm, full
		}
		if style != &termtext.Faint {
			to = min(to, (halves+1)/2)
		}
		var run strings.Builder
		for i := from; i < to; i++ {
			switch {
			case i == width-1 && rate > fullScale:
				run.WriteString("▶")
			case 2*i+2 <= halves:
				run.WriteString("━")
			case 2*i+1 == halves:
				run.WriteString("╸")
			case i == hot || i == full:
				run.WriteString("│")
			default:
				run.WriteString("·")
			}
		}
		cells.WriteString(style.Render(run.String()))
		from = to
	}
	return cells.String()
}
