package top

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/live"
	"github.com/hotparam/hotparam/cmd/internal/termtext"
	"github.com/hotparam/hotparam/internal/hotwords"
)

// ticks are blocks of zero to eight eighths of a line's height.
var ticks = []rune(" ▁▂▃▄▅▆▇█")

// resample divides the time before end into width equal parts, and returns the highest rate in
// each, or NaN where it is unknown, and the part of it that passed.
func resample(h live.History, end time.Time, length time.Duration, width int) (parts, passed []float64) {
	parts, passed = make([]float64, width), make([]float64, width)
	for i := range parts {
		parts[i] = math.NaN()
	}
	begin := end.Add(-length)
	for i := range h.Len() {
		p := h.At(i)
		column := int(int64(p.At.Sub(begin)) * int64(width) / int64(length))
		if !p.At.Before(begin) && column >= 0 && column < width && !(parts[column] >= p.Rate) {
			parts[column], passed[column] = p.Rate, p.Rate*(1-p.Refused)
		}
	}
	return parts, passed
}

// sparkline draws a key's rate in one row, five or six seconds to a column.
func sparkline(h live.History, end time.Time, width int) string {
	length := time.Minute
	if width >= wideLine {
		length = 2 * time.Minute
	}
	parts, _ := resample(h, end, length, width)
	return string(blocks(parts, highest(parts), 0, 1))
}

func highest(parts []float64) float64 {
	maximum := 0.0
	for _, v := range parts {
		if v > maximum {
			maximum = v
		}
	}
	return maximum
}

// blocks returns one row of a chart with that many rows; row 0 is the lowest. Known values have
// at least a tick in the lowest row.
func blocks(parts []float64, peak float64, row, rows int) []rune {
	line := make([]rune, len(parts))
	for i, v := range parts {
		line[i] = ' '
		if math.IsNaN(v) {
			continue
		}
		eighths := 0
		if peak > 0 {
			eighths = int(math.Round(v/peak*float64(8*rows))) - 8*row
		}
		if row == 0 {
			eighths = max(1, eighths)
		}
		line[i] = ticks[max(0, min(eighths, 8))]
	}
	return line
}

// chart draws a key's rate over the last minutes, with the part that is refused in the color of
// alarms, the threshold if that is a rate, and the limit.
func chart(h *live.HotKey, end time.Time, width, height int) []string {
	const axis = 12
	length, ago := live.MaxPoints*time.Second, "5 minutes ago"
	if n := h.History.Len(); n > 0 && end.Sub(h.History.At(0).At) < time.Minute {
		length, ago = time.Minute, "1 minute ago"
	}
	columns := max(1, min(width-axis-2, int(length/time.Second)))
	parts, passed := resample(h.History, end, length, columns)
	threshold := math.NaN()
	if c := h.Cause; !c.IsZero() && c.Kind == 0 {
		threshold = c.Rate.PerSecond()
	}
	maximum := highest(parts)
	if threshold <= 4*maximum {
		maximum = math.Max(maximum, threshold)
	}
	rowOf := func(rate float64) int {
		if rate <= maximum && maximum > 0 {
			return min(height-1, int(rate/maximum*float64(height)))
		}
		return -1
	}
	mark, limit := rowOf(threshold), -1
	if h.Admitted.Known() {
		limit = rowOf(h.Admitted.Allowed())
	}
	lines := make([]string, 0, height+1)
	for row := height - 1; row >= 0; row-- {
		label := ""
		switch row {
		case height - 1:
			label = hotwords.Speed(maximum, h.Cause.Unit)
		case 0:
			label = hotwords.Speed(0, h.Cause.Unit)
		}
		line := blocks(parts, maximum, row, height)
		if row == limit {
			label = across(line, label, "limit", '─')
		}
		if row == mark {
			label = across(line, label, "hot at", '┄')
		}
		lines = append(lines, fmt.Sprintf("%*s ", axis, label)+colored(line, func(i int) bool {
			return passed[i] < parts[i] && rowOf(passed[i]) < row
		}))
	}
	return append(lines, strings.Repeat(" ", axis+1)+termtext.Faint.Render(ago+strings.Repeat(" ", max(1, columns-len(ago)-3))+"now"))
}

// across draws a line where a row of a chart is empty, and returns the row's label.
func across(row []rune, label, name string, stroke rune) string {
	for i := range row {
		if row[i] == ' ' {
			row[i] = stroke
		}
	}
	return cmp.Or(label, name)
}

// colored renders a row of a chart, with the cells for which refused returns true in the color of
// alarms.
func colored(row []rune, refused func(int) bool) string {
	var b strings.Builder
	for from := 0; from < len(row); {
		alarm, to := refused(from), from+1
		for to < len(row) && refused(to) == alarm {
			to++
		}
		style := termtext.Accent
		if alarm {
			style = termtext.Alarm
		}
		b.WriteString(style.Render(string(row[from:to])))
		from = to
	}
	return b.String()
}
