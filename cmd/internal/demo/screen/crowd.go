package screen

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/hotparam/hotparam/cmd/internal/demo"
	"github.com/hotparam/hotparam/cmd/internal/termtext"
)

// Bounds of the colors of latencies.
const (
	slow     = 50.0 // ms
	verySlow = 150.0
)

// Widths of the table of effects.
const (
	effectName   = 24
	effectColumn = 16
)

// effectRow is one figure of each variant.
type effectRow struct {
	name  string
	value func(*demo.Effect) (words string, style lipgloss.Style)
}

var effectRows = [...]effectRow{
	{"calls at the database", func(e *demo.Effect) (string, lipgloss.Style) { return fmt.Sprintf("%.0f/s", e.Calls), plain }},
	{"the crowd: served", servedCrowd},
	{"           refused", func(e *demo.Effect) (string, lipgloss.Style) { return bad(&e.Crowd, e.Crowd.Refused) }},
	{"the others: p99", othersP99},
	{"            not answered", func(e *demo.Effect) (string, lipgloss.Style) { return bad(&e.Latency, e.Failed) }},
}

func servedCrowd(e *demo.Effect) (string, lipgloss.Style) {
	return share(&e.Crowd, e.Crowd.Served()), plain
}

func othersP99(e *demo.Effect) (string, lipgloss.Style) { return milliseconds(e.P99) }

var plain = lipgloss.NewStyle()

// inWords lists a figure of all variants.
func inWords(effects [demo.Variants]demo.Effect, value func(*demo.Effect) (string, lipgloss.Style)) string {
	var words []string
	for v := range effects {
		of, _ := value(&effects[v])
		words = append(words, of+" "+demo.Variant(v).String())
	}
	return strings.Join(words, ", ")
}

// share formats a share of the requests, if there are any.
func share(l *demo.Latency, part float64) string {
	if l.Requests == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*part)
}

// bad formats a share that should be zero.
func bad(l *demo.Latency, part float64) (string, lipgloss.Style) {
	if part >= 0.005 {
		return share(l, part), termtext.Alarm
	}
	return share(l, part), plain
}

func milliseconds(ms *float64) (string, lipgloss.Style) {
	switch {
	case ms == nil:
		return "-", termtext.Faint
	case *ms >= verySlow:
		return fmt.Sprintf("%.0f ms", *ms), termtext.Alarm
	case *ms >= slow:
		return fmt.Sprintf("%.0f ms", *ms), termtext.Warm
	}
	return fmt.Sprintf("%.0f ms", *ms), termtext.Calm
}

// effectTable shows the effects of all variants in a column each, under a title. Without colors it
// is for output that is no terminal's.
func effectTable(title string, effects [demo.Variants]demo.Effect, colors bool) []string {
	head := termtext.Pad(title, effectName, false)
	for v := range demo.Variants {
		head += termtext.Pad(v.String(), effectColumn, true)
	}
	lines := []string{head}
	for _, row := range effectRows {
		line := termtext.Pad(row.name, effectName, false)
		for v := range effects {
			words, style := row.value(&effects[v])
			words = termtext.Pad(words, effectColumn, true)
			if colors {
				words = style.Render(words)
			}
			line += words
		}
		lines = append(lines, line)
	}
	return lines
}

// effects shows the recent effects.
func (v *screenText) effects(width int) []string {
	lines := effectTable("THE FLASH CROWD", v.now.Effects, true)
	lines[0] = termtext.Faint.Render(lines[0])
	for i := range lines {
		lines[i] = termtext.Fit(" "+lines[i], width)
	}
	return lines
}

// legend explains the bars.
func legend(width int) string {
	return flow([]string{
		termtext.Faint.Render("rate:") + " " + termtext.Calm.Render("━") + termtext.Faint.Render(fmt.Sprintf(" below the threshold, %.0f/s", threshold)),
		termtext.Warm.Render("━") + termtext.Faint.Render(fmt.Sprintf(" hot, passes up to %.0f/s", passes)),
		termtext.Alarm.Render("━") + termtext.Faint.Render(" refused"),
	}, "  ", width)[0]
}

// crowdWords describes the effect of the key f.
func (v *screenText) crowdWords() string {
	if left := v.now.CrowdLeft; left > 0 {
		return fmt.Sprintf("f end the flash crowd (%.0f s left)", left.Seconds())
	}
	return fmt.Sprintf("f flash crowd: %d/s for one company", demo.CrowdRate)
}

// When an unattended demo starts its crowd, and how long the crowd lasts.
const (
	leastWithCrowd   = 10 * time.Second // a shorter demo has no crowd
	crowdAfter       = 0.4
	crowdPart        = 0.4
	crowdAtMost      = demo.CrowdLength
	crowdStartsAfter = 30 * time.Second
)

// unattendedCrowd returns when the crowd of an unattended demo begins, and how long it lasts.
// Both are zero if there is no crowd.
func unattendedCrowd(length time.Duration) (after, lasts time.Duration) {
	if length < leastWithCrowd {
		return 0, 0
	}
	after = min(crowdStartsAfter, time.Duration(crowdAfter*float64(length)))
	return after, min(crowdAtMost, time.Duration(crowdPart*float64(length)))
}

// startCrowd schedules the crowd of an unattended demo. It returns a function that cancels a
// crowd that has not begun.
func startCrowd(d *demo.Demo, length time.Duration) (cancel func() bool) {
	after, lasts := unattendedCrowd(length)
	if lasts == 0 {
		return func() bool { return true }
	}
	return time.AfterFunc(after, func() { d.StartCrowd(lasts) }).Stop
}

// crowdSummary describes the effects during the crowd.
func crowdSummary(c *demo.CrowdResult) string {
	if c == nil || c.Limits.P50 == nil || c.NoLimits.P50 == nil {
		return ""
	}
	title := fmt.Sprintf("while a crowd asked for %s %d times a second:\n", c.Key, c.Rate)
	return title + "  " + strings.Join(effectTable("", c.Effects(), false), "\n  ") + "\n"
}
