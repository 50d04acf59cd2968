package screen

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/hotparam/hotparam/cmd/internal/demo"
	"github.com/hotparam/hotparam/cmd/internal/termtext"
	"github.com/hotparam/hotparam/internal/hotwords"
)

// screenText is the content of the live view.
type screenText struct {
	transport string                     // transport of counts, in words
	redis     []string                   // commands to try, longest first
	curl      func(text string) []string // commands that request a key
	warning   func() string              // returns the last warning, or ""
	ends      time.Time                  // zero if the demo has no fixed length
	ending    bool

	now    demo.Moment
	meter  meter
	cooled []cooledKey
	tried  demo.CountedKey // key that the curl commands request; kept while it is hot
}

// cooledKey is a key that is shown for a while after it has cooled.
type cooledKey struct {
	demo.CountedKey
	cooled time.Time
}

// showCooled is the time for which a cooled key is shown.
const showCooled = 4 * time.Second

// update sets the current state.
func (v *screenText) update(s demo.Moment) {
	for _, k := range missing(v.now.Hot, s.Hot) {
		v.cooled = append(v.cooled, cooledKey{k, s.At})
	}
	v.cooled = slices.DeleteFunc(v.cooled, func(c cooledKey) bool {
		again := len(missing([]demo.CountedKey{c.CountedKey}, s.Hot)) == 0
		return again || s.At.Sub(c.cooled) >= showCooled
	})
	if len(s.Hot) > 0 && len(missing([]demo.CountedKey{v.tried}, s.Hot)) > 0 {
		v.tried = s.Hot[0]
	}
	v.now = s
	v.meter.add(s.At, s.Allowed+s.Limited)
}

// tall is the least height of a terminal that shows more than the bare facts.
const tall = 22

// render fills a terminal of the given width and height.
func (v *screenText) render(width, height int) string {
	if width < 1 || height < 1 {
		return "" // unknown yet
	}
	head, try := v.head(width), v.try(width)
	head = head[:min(len(head), height/5)]
	if height >= tall {
		head = append(head, "")
		try = append([]string{termtext.Faint.Render(termtext.Fit(" Try in another terminal:", width))}, try...)
		try = slices.Concat([]string{legend(width), ""}, v.effects(width), []string{""}, try)
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

// head shows the state of the demo, most important items first.
func (v *screenText) head(width int) []string {
	s := v.now
	rule := demo.Rules().Rules[0]
	refused := termtext.Faint
	if s.Limited > 0 {
		refused = termtext.Alarm
	}
	items := []string{
		termtext.Bold.Render("hotparam demo"),
		fmt.Sprintf("%d instances", demo.Instances),
		fmt.Sprintf("%3.0f requests/s", v.meter.perSecond()),
		hotwords.Thousands(s.Keys) + " keys seen",
		termtext.Warm.Render(fmt.Sprintf("%d hot", len(s.Hot))),
		refused.Render(hotwords.Thousands(s.Limited) + " refused"),
	}
	if n := len(v.cooled); n > 0 { // cooled keys have rows too
		items[4] += termtext.Faint.Render(fmt.Sprintf(", %d cooled", n))
	}
	if s.Enforce.P50 != nil {
		items = append(items, fmt.Sprintf("time to limit %.0f ms p50, %.0f ms p99", *s.Enforce.P50, *s.Enforce.P99))
	}
	if !s.LogTime.IsZero() {
		items = append(items, termtext.Faint.Render("log of "+s.LogTime.Format("2006-01-02 15:04:05")))
	}
	items = append(items, termtext.Faint.Render(fmt.Sprintf("hot at %s, then %s on each instance", rule.Hot[0].Rate, rule.Limit.Rate)))
	items = append(items, termtext.Faint.Render(v.transport))
	return flow(items, termtext.Faint.Render(" · "), width)
}

// flow breaks items into lines of at most width.
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
			lines = append(lines, termtext.Fit(line, width))
			line = " " + item
		}
	}
	return append(lines, termtext.Fit(line, width))
}

// fit cuts a line to width.

// try shows commands to try, in the longest form that fits.
func (v *screenText) try(width int) []string {
	lines := []string{v.command(v.redis, width)}
	if v.tried.Text != "" {
		lines = append(lines, v.command(v.curl(termtext.Printable(v.tried.Text)), width))
	}
	return lines
}

func (v *screenText) command(forms []string, width int) string {
	for _, form := range forms {
		if lipgloss.Width(form)+2 <= width {
			return " " + termtext.Accent.Render(form)
		}
	}
	return termtext.Fit(" "+termtext.Accent.Render(forms[len(forms)-1]), width)
}

func (v *screenText) foot(width int) string {
	text := " q quit · " + v.crowdWords()
	switch {
	case v.ending:
		text = " ending; Ctrl-C to end at once"
	case !v.ends.IsZero() && !v.now.At.IsZero():
		text += fmt.Sprintf(" · ends in %.0f s", max(0, v.ends.Sub(v.now.At).Seconds()))
	}
	text = termtext.Faint.Render(text)
	if w := v.warning(); w != "" {
		text += " " + termtext.Warm.Render(w)
	}
	return termtext.Fit(text, width)
}
