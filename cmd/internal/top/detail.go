package top

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/hotparam/hotparam/cmd/internal/live"
	"github.com/hotparam/hotparam/cmd/internal/termtext"
	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// details returns the lines that describe a key. They include a chart if height leaves room for one.
func (m *model) details(r *screenRow, height int) []string {
	lines := []string{"", " " + termtext.Bold.Render(termtext.Printable(r.key.Text))}
	fact := func(name, format string, args ...any) {
		lines = append(lines, " "+termtext.Faint.Render(termtext.Pad(name, 11, false))+" "+termtext.Printable(fmt.Sprintf(format, args...)))
	}
	fact("rule", "%s", r.key.Rule)
	if c := r.control; c != nil {
		words := fmt.Sprintf("%s until %s (%s more), by %s", m.state(r), c.Until.Local().Format(time.TimeOnly), roughly(c.Until.Sub(m.clock())), operatorWords(c))
		if c.Why != "" {
			words += ": " + c.Why
		}
		fact("operator", "%s", words)
	}
	h := r.hot
	if h == nil {
		return append(lines, "", " It is not hot.")
	}
	rate := hotwords.Speed(h.Rate, h.Cause.Unit)
	if h.Estimated {
		rate += ", estimated from samples"
	}
	fact("rate", "%s", rate)
	fact("count", "%s", hotwords.Bounds(&h.Hot))
	since := fmt.Sprintf("since %s (%s)", h.Since.Local().Format(time.TimeOnly), roughly(m.clock().Sub(h.Since)))
	if h.Hold != nil {
		fact("hot at", "%s, %s", hotwords.Cause(h.Cause), since)
	} else {
		fact("hot at", "%s, reached %.1f times over; %s", hotwords.Cause(h.Cause), h.Ratio, since)
	}
	switch {
	case h.Hold != nil:
		fact("limit", "%s, mode %s", hotwords.Treatment(h.Hold), h.Mode)
		fact("because", "%s", hotwords.Evidence(h.Hold))
	case h.Limit.IsZero():
		fact("limit", "none, mode %s", h.Mode)
	default:
		fact("limit", "%s, burst %s, mode %s", hotwords.Rate(h.Limit, h.Cause.Unit), hotwords.Count(h.Burst, h.Cause.Unit), h.Mode)
	}
	if h.Admitted.Known() {
		fact("admitted", "%s, by all instances", hotwords.Admitted(h.Admitted, h.Cause.Unit))
	}
	if words := hotwords.Refused(h.Admitted); words != "-" {
		if h.Mode == rules.ModeShadow {
			words += ", if the limit was not in shadow mode"
		}
		if ever := hotwords.Outcomes(&h.Hot); ever != "" {
			words += "; since it became hot " + ever
		}
		fact("refused", "%s", words)
	}
	if words := hotwords.OnHot(h.Admitted.OnHot); words != "" {
		fact("on_hot", "%s, by all instances", words)
	}
	switch {
	case h.Spared:
		fact("usual", "yes: its count is as high as always. It is not limited, because other hot keys explain the traffic")
	case h.Usual:
		fact("usual", "yes: its count is as high as always")
	}
	fact("found by", "%s", h.Owner)
	origins := m.origins(h)
	room := height - len(lines) - len(origins) - 3
	if room >= 3 {
		lines = append(lines, "")
		lines = append(lines, chart(h, m.clock(), m.width, min(room, 14))...)
	}
	return append(lines, origins...)
}

// operatorWords describes who set a control: the Redis user, and the claimed name.
func operatorWords(c *published.Control) string {
	if c.Claimed == "" {
		return c.By
	}
	return c.By + " (claims to be " + c.Claimed + ")"
}

// origins returns the routes, instances and callers of a key, side by side if there is room.
func (m *model) origins(h *live.HotKey) []string {
	top := h.Top
	if top == nil {
		return []string{"", " " + termtext.Faint.Render("The routes, instances and callers are not known yet.")}
	}
	window, sampled := hotwords.OriginSpans(&h.Hot)
	in := func(d time.Duration) string {
		if d == 0 {
			return ""
		}
		return " in " + hotwords.Span(d)
	}
	kinds := []struct {
		title   string
		origins []published.Origin
	}{{"ROUTES" + in(sampled), top.Routes}, {"INSTANCES" + in(window), top.Instances}, {"CALLERS" + in(sampled), top.Callers}}
	block := func(title string, origins []published.Origin, width int) string {
		lines := []string{termtext.Faint.Render(cellOf(title, width, false))}
		for _, o := range origins {
			lines = append(lines, cellOf(fmt.Sprintf("%9s  %s", hotwords.OriginCount(o), termtext.Printable(o.Name)), width, false))
		}
		if len(origins) == 0 {
			lines = append(lines, cellOf(termtext.Faint.Render("not known"), width, false))
		}
		return strings.Join(lines, "\n")
	}
	if m.width < 100 {
		lines := []string{""}
		for _, kind := range kinds {
			lines = append(lines, strings.Split(" "+strings.ReplaceAll(block(kind.title, kind.origins[:min(3, len(kind.origins))], m.width-2), "\n", "\n "), "\n")...)
		}
		return lines
	}
	width := (m.width - 4) / 3
	joined := lipgloss.JoinHorizontal(lipgloss.Top, " ", block(kinds[0].title, kinds[0].origins, width), " ", block(kinds[1].title, kinds[1].origins, width), " ", block(kinds[2].title, kinds[2].origins, width))
	lines := append([]string{""}, strings.Split(joined, "\n")...)
	if top.Explains > 0 {
		lines = append(lines, fmt.Sprintf(" %d more specific keys are hot for no other reason", top.Explains))
	}
	return lines
}
