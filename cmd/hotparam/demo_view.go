package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/hotparam/hotparam/internal/demo"
)

// demoView is what the live view shows.
type demoView struct {
	transport string                     // what counts go over
	redis     []string                   // commands to try, the fullest first
	curl      func(text string) []string // of a key
	warning   func() string              // the last one; empty: none
	ends      time.Time                  // zero: when it is asked to
	ending    bool

	now     demo.Snapshot
	meter   meter
	history latencyHistory
	cooled  []cooledKey
	tried   demo.Key // what curl asks for: a key is kept while it is hot
}

// cooledKey is a key that is shown a little longer.
type cooledKey struct {
	demo.Key
	at time.Time
}

// showCooled is how long.
const showCooled = 4 * time.Second

// Colours are those of the terminal's own theme. Faint, not grey, is what every
// theme can read.
var (
	bold   = lipgloss.NewStyle().Bold(true)
	faint  = lipgloss.NewStyle().Faint(true)
	calm   = lipgloss.NewStyle().Foreground(lipgloss.Green)
	warm   = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	alarm  = lipgloss.NewStyle().Foreground(lipgloss.Red)
	accent = lipgloss.NewStyle().Foreground(lipgloss.Cyan)
)

// update takes the state of now.
func (v *demoView) update(s demo.Snapshot) {
	for _, k := range missing(v.now.Hot, s.Hot) {
		v.cooled = append(v.cooled, cooledKey{k, s.At})
	}
	v.cooled = slices.DeleteFunc(v.cooled, func(c cooledKey) bool {
		again := len(missing([]demo.Key{c.Key}, s.Hot)) == 0
		return again || s.At.Sub(c.at) >= showCooled
	})
	if len(s.Hot) > 0 && len(missing([]demo.Key{v.tried}, s.Hot)) > 0 {
		v.tried = s.Hot[0]
	}
	v.now = s
	v.meter.add(s.At, s.Allowed+s.Limited)
	v.history.add(s)
}

// tall is a height that has room for more than the bare facts.
const tall = 20

// render fills a terminal of width and height, no line longer than that.
func (v *demoView) render(width, height int) string {
	if width < 1 || height < 1 {
		return "" // not known yet
	}
	head, try := v.head(width), v.try(width)
	head = head[:min(len(head), height/5)]
	if height >= tall {
		head = append(head, "")
		try = append([]string{faint.Render(fit(" Try in another terminal:", width))}, try...)
		try = slices.Concat([]string{legend(width), ""}, v.latency(width), []string{""}, try)
	}
	const table, foot = 3, 1 // at least
	if len(head)+table+1+len(try)+foot > height {
		try = nil
	}
	room := height - len(head) - foot
	if len(try) > 0 {
		room -= len(try) + 1
	}
	lines := slices.Concat(head, v.table(width, room))
	for len(lines) < height-foot-len(try) {
		lines = append(lines, "")
	}
	lines = slices.Concat(lines, try, []string{v.foot(width)})
	return strings.Join(lines[:min(len(lines), height)], "\n")
}

// head says how the whole is doing, what matters most first.
func (v *demoView) head(width int) []string {
	s := v.now
	rule := demo.Rules().Rules[0]
	refused := faint
	if s.Limited > 0 {
		refused = alarm
	}
	items := []string{
		bold.Render("hotparam demo"),
		fmt.Sprintf("%d instances", demo.Instances),
		fmt.Sprintf("%3.0f requests/s", v.meter.perSecond()),
		thousands(s.Keys) + " keys seen",
		warm.Render(fmt.Sprintf("%d hot", len(s.Hot))),
		refused.Render(thousands(s.Limited) + " refused"),
	}
	if s.Enforce.P50 != nil {
		items = append(items, fmt.Sprintf("time to limit %.0f ms p50, %.0f ms p99", *s.Enforce.P50, *s.Enforce.P99))
	}
	if !s.LogTime.IsZero() {
		items = append(items, faint.Render("log of "+s.LogTime.Format("2006-01-02 15:04:05")))
	}
	items = append(items, faint.Render(fmt.Sprintf("hot at %s, then %s on each instance", rule.Hot[0].Rate, rule.Limit.Rate)))
	items = append(items, faint.Render(v.transport))
	return flow(items, faint.Render(" · "), width)
}

// flow puts items into lines that they fit.
func flow(items []string, between string, width int) []string {
	var lines []string
	line := ""
	for _, item := range items {
		switch {
		case line == "":
			line = " " + item
		case lipgloss.Width(line)+lipgloss.Width(between)+lipgloss.Width(item) < width:
			line += between + item
		default:
			lines = append(lines, fit(line, width))
			line = " " + item
		}
	}
	return append(lines, fit(line, width))
}

// fit cuts a line to width.
func fit(line string, width int) string { return lipgloss.NewStyle().MaxWidth(width).Render(line) }

// try says what to do meanwhile, in the longest form that fits.
func (v *demoView) try(width int) []string {
	lines := []string{v.command(v.redis, width)}
	if v.tried.Text != "" {
		lines = append(lines, v.command(v.curl(printable(v.tried.Text)), width))
	}
	return lines
}

func (v *demoView) command(forms []string, width int) string {
	for _, form := range forms {
		if lipgloss.Width(form)+2 <= width {
			return " " + accent.Render(form)
		}
	}
	return fit(" "+accent.Render(forms[len(forms)-1]), width)
}

func (v *demoView) foot(width int) string {
	text := " q quit · " + v.crowdWords()
	switch {
	case v.ending:
		text = " ending; Ctrl-C to end at once"
	case !v.ends.IsZero() && !v.now.At.IsZero():
		text += fmt.Sprintf(" · ends in %.0f s", max(0, v.ends.Sub(v.now.At).Seconds()))
	}
	text = faint.Render(text)
	if w := v.warning(); w != "" {
		text += " " + warm.Render(w)
	}
	return fit(text, width)
}
