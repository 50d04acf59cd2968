package screen

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/hotparam/hotparam/internal/demo"
	"github.com/hotparam/hotparam/internal/termtext"
)

// latencyHistory holds the recent latencies, with limits and without.
type latencyHistory struct {
	last   time.Time
	points [][2]demo.Latency
}

// The interval of the history's points, and the number of points kept.
const (
	pointEvery = 500 * time.Millisecond
	pointsKept = 60
)

func (h *latencyHistory) add(s demo.Moment) {
	if s.At.Sub(h.last) < pointEvery {
		return
	}
	h.last = s.At
	h.points = append(h.points, [2]demo.Latency{s.Limits, s.NoLimits})
	h.points = h.points[max(0, len(h.points)-pointsKept):]
}

// Bounds of the colors and of the height of the latency chart. The full height is the longest
// time that the demo's database lets a request wait.
const (
	slow      = 50.0 // ms
	verySlow  = 150.0
	fullChart = 310.0
)

// latency shows the latencies of requests for other companies with limits and without, one line
// each.
func (v *screenText) latency(width int) []string {
	const label, figures = 15, 34
	chart := max(0, min(pointsKept, width-label-figures-4))
	title := termtext.Pad(termtext.Shorten(" LATENCY OF THE OTHER COMPANIES", label+chart+1), label+1+chart+1, false) + fmt.Sprintf("%9s %9s  %12s", "p50", "p99", "NOT ANSWERED")
	lines := []string{termtext.Faint.Render(title)}
	for i, name := range []string{"with limits", "without limits"} {
		now := [2]demo.Latency{v.now.Limits, v.now.NoLimits}[i]
		failed := fmt.Sprintf("%12s", fmt.Sprintf("%.0f%%", 100*now.Failed))
		if now.Failed >= 0.005 {
			failed = termtext.Alarm.Render(failed)
		}
		lines = append(lines, " "+termtext.Pad(name, label, false)+v.history.chartLine(i, chart)+" "+milliseconds(now.P50)+" "+milliseconds(now.P99)+"  "+failed)
	}
	for i := range lines {
		lines[i] = termtext.Fit(lines[i], width)
	}
	return lines
}

// milliseconds formats a latency in its color.
func milliseconds(ms *float64) string {
	if ms == nil {
		return termtext.Faint.Render(termtext.Pad("-", 9, true))
	}
	return speed(*ms).Render(termtext.Pad(fmt.Sprintf("%.0f ms", *ms), 9, true))
}

func speed(ms float64) lipgloss.Style {
	switch {
	case ms >= verySlow:
		return termtext.Alarm
	case ms >= slow:
		return termtext.Warm
	}
	return termtext.Calm
}

// chartLine draws the median latency over time.
func (h *latencyHistory) chartLine(i, width int) string {
	levels := []rune("▁▂▃▄▅▆▇█")
	points := h.points[max(0, len(h.points)-width):]
	var b, run strings.Builder // a run has a single color
	style := termtext.Faint
	b.WriteString(strings.Repeat(" ", width-len(points)))
	for n, p := range points {
		next, mark := termtext.Faint, ' '
		if ms := p[i].P50; ms != nil {
			next, mark = speed(*ms), levels[min(len(levels)-1, int(8**ms/fullChart))]
		}
		if n > 0 && next.GetForeground() != style.GetForeground() {
			b.WriteString(style.Render(run.String()))
			run.Reset()
		}
		style = next
		run.WriteRune(mark)
	}
	if run.Len() > 0 {
		b.WriteString(style.Render(run.String()))
	}
	return b.String()
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

// crowdSummary describes the latencies of the other companies' requests during the crowd.
func crowdSummary(c *demo.CrowdResult) string {
	if c == nil || c.Limits.P50 == nil || c.NoLimits.P50 == nil {
		return ""
	}
	words := func(l demo.Latency) string {
		return fmt.Sprintf("p50 %.0f ms, p99 %.0f ms, %.0f%% not answered", *l.P50, *l.P99, 100*l.Failed)
	}
	return fmt.Sprintf("while a crowd asked for %s %d times a second, the other companies' requests took\n  with limits:    %s\n  without limits: %s\n",
		c.Key, c.Rate, words(c.Limits), words(c.NoLimits))
}
