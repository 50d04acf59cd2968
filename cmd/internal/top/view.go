package top

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/hotparam/hotparam/cmd/internal/termtext"
	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/published"
)

// View implements [tea.Model].
func (m *model) View() tea.View {
	v := tea.NewView(strings.Join(m.screen(), "\n"))
	v.AltScreen = true
	v.WindowTitle = "hotparam top"
	return v
}

// screen returns as many lines as the screen has, none wider than the screen.
func (m *model) screen() []string {
	if m.width < 1 || m.height < 1 {
		return nil // unknown yet
	}
	lines := m.head()
	foot := m.foot()
	room := max(0, m.height-len(lines)-len(foot))
	var body []string
	switch {
	case m.help:
		body = helpLines()
	case m.detail && m.current() != nil:
		body = m.details(m.current(), room)
	default:
		body = m.table(room)
	}
	for i := range room {
		if i < len(body) {
			lines = append(lines, body[i])
		} else {
			lines = append(lines, "")
		}
	}
	lines = append(lines, foot...)
	lines = lines[max(0, len(lines)-m.height):]
	for i := range lines {
		lines[i] = termtext.Fit(lines[i], m.width)
	}
	return lines
}

// page returns the number of table rows that fit.
func (m *model) page() int {
	return max(1, m.height-len(m.head())-len(m.foot())-1)
}

// head returns the lines with the namespace, the totals and any problem.
func (m *model) head() []string {
	s := m.snapshot
	state := fmt.Sprintf(" · %d hot · %d suspect · %s", len(s.Hot), len(s.Suspects), hotwords.Plural(s.InstancesTotal, "instance"))
	switch {
	case s.Seq == 0:
		state = " · asking Redis…"
	case s.ControlsErr != nil:
		state += " · controls: not known"
	case len(s.Controls) > 0:
		state += " · " + hotwords.Plural(len(s.Controls), "control")
	}
	title := termtext.Bold.Render(" hotparam top") + " " + m.namespace + state
	right := "by " + sortWords[m.sort]
	if m.reverse {
		right += ", reversed"
	}
	gap := m.width - lipgloss.Width(title) - len(right) - 1
	if gap > 0 {
		title += strings.Repeat(" ", gap) + termtext.Faint.Render(right)
	}
	lines := []string{title}
	switch {
	case s.Err != nil && s.Read.IsZero():
		lines = append(lines, termtext.Alarm.Render(termtext.Printable(fmt.Sprintf(" Redis at %s cannot be read, trying again: %v", m.redis, s.Err))))
	case s.Err != nil:
		lines = append(lines, termtext.Alarm.Render(termtext.Printable(fmt.Sprintf(" Redis is unavailable: this was read %s ago. %v", time.Since(s.Read).Round(time.Second), s.Err))))
	case s.Seq > 0 && !s.Published:
		lines = append(lines, termtext.Warm.Render(" No aggregator publishes for this namespace now, so no key is limited."))
	}
	if m.filtering || m.filter != "" {
		line := " /" + termtext.Printable(m.filter)
		if m.filtering {
			line += "█  " + termtext.Faint.Render("Enter to keep it, Esc to remove it")
		} else {
			line += termtext.Faint.Render(fmt.Sprintf("  %d of %d; Esc to remove it", len(m.rows), len(m.all)))
		}
		lines = append(lines, line)
	}
	return lines
}

// foot returns the prompt, the last answer, or the help on keys.
func (m *model) foot() []string {
	switch {
	case m.prompt != nil:
		lines := m.prompt.lines()
		if p := m.prompt; p.step == confirm {
			lines = slices.Insert(lines, 1, wrapped(termtext.Calm, m.snapshot.Effect(p.key, p.action), m.width)...)
		}
		return lines
	case m.help:
		return []string{termtext.Faint.Render(" any key to go back")}
	case m.result != "" && m.failed:
		return wrapped(termtext.Alarm, m.result, m.width)
	case m.result != "":
		return wrapped(termtext.Calm, m.result, m.width)
	case m.detail:
		return []string{termtext.Faint.Render(" Esc back · ↑↓ other keys · p pin b block a allow r release · ? help · q quit")}
	}
	return []string{termtext.Faint.Render(" Enter details · / filter · s sort · p pin b block a allow r release · ? help")}
}

// wrapped wraps a text to at most three lines.
func wrapped(style lipgloss.Style, text string, width int) []string {
	lines := strings.Split(lipgloss.NewStyle().Width(max(1, width-2)).Render(termtext.Printable(text)), "\n")
	lines = lines[:min(len(lines), 3)]
	for i := range lines {
		lines[i] = style.Render(" " + lines[i])
	}
	return lines
}

func helpLines() []string {
	return []string{
		"",
		termtext.Bold.Render(" Keys"),
		"  ↑ ↓ j k, PgUp PgDn, g G   choose a key",
		"  Enter, Esc                all that is known of it, and back",
		"  /                         show only keys with this text, rule or parameter",
		"  s, S                      sort by the next column; reverse the order",
		"  p                         pin: hold the key to its limit as if it was hot",
		"  b                         block: each request for the key gets 403",
		"  a                         allow: the key's rule does not limit it",
		"  r                         release: end what an operator has set",
		"  q, Ctrl-C                 quit",
		"",
		termtext.Bold.Render(" Columns"),
		"  RATE    units a second now; LINE the last minute or two, on a scale of its own",
		"  COUNT   bounds of the count in the threshold's window; HOT AT the threshold",
		"  ADMITTED the rate that all instances together admit, in the unit of time of LIMIT",
		"  REFUSED requests a second that all instances together refuse, of how many",
		"  STATE   what happens to its requests, or what an operator set, and how long",
	}
}

// column is a column of the table next to the key.
type column struct {
	title string
	width int
	right bool
	cell  func(m *model, r *screenRow) string
}

// rankedColumn is a column with its importance, for screens too narrow for all.
type rankedColumn struct {
	column
	rank int
}

// allColumns are the columns in the order of display.
var allColumns = [...]rankedColumn{
	{column{"RATE", 11, true, func(_ *model, r *screenRow) string { return hotwords.Speed(r.hot.Rate, r.hot.Cause.Unit) }}, 11},
	{column{"LINE", narrowLine, false, func(m *model, r *screenRow) string { return sparkline(r.hot.History, m.clock(), m.lineWidth()) }}, 9},
	{column{"COUNT", 18, true, func(_ *model, r *screenRow) string { return hotwords.Bounds(&r.hot.Hot) }}, 3},
	{column{"HOT AT", 14, true, func(_ *model, r *screenRow) string { return hotwords.Cause(r.hot.Cause) }}, 7},
	{column{"LIMIT", 8, true, func(_ *model, r *screenRow) string { return limitCell(r) }}, 8},
	{column{"ADMITTED", 9, true, func(_ *model, r *screenRow) string { return admittedCell(r) }}, 5},
	{column{"REFUSED", 18, true, func(_ *model, r *screenRow) string { return hotwords.Refused(r.hot.Admitted) }}, 6},
	{column{"STATE", 12, false, func(m *model, r *screenRow) string { return m.state(r) }}, 10},
	{column{"SINCE", 8, false, func(_ *model, r *screenRow) string { return r.hot.Since.Local().Format(time.TimeOnly) }}, 2},
	{column{"RULE", 16, false, func(_ *model, r *screenRow) string { return termtext.Printable(r.key.Rule) }}, 4},
}

// Widths of the column LINE.
const narrowLine, wideLine = 12, 20

func (m *model) lineWidth() int {
	if m.width < 110 {
		return narrowLine
	}
	return wideLine
}

// leastKey is the minimal width of a key. On a narrow screen it is half of the screen.
const leastKey = 26

// columns returns the columns that fit, and the width left for the key.
func (m *model) columns() (shown []column, key int) {
	key = min(leastKey, m.width/2)
	room := m.width - 2 - key
	all := allColumns
	for i := range all {
		if all[i].title == "LINE" {
			all[i].width = m.lineWidth()
		}
	}
	// A column is left out if a more important one has no room.
	least := 12
	for rank := 11; rank >= 2; rank-- {
		i := slices.IndexFunc(all[:], func(c rankedColumn) bool { return c.rank == rank })
		if all[i].width+2 > room {
			break
		}
		least, room = rank, room-all[i].width-2
	}
	for _, c := range all {
		if c.rank >= least {
			shown = append(shown, c.column)
		}
	}
	return shown, key + max(0, room)
}

func limitCell(r *screenRow) string {
	if r.hot.Limit.IsZero() {
		return "-"
	}
	return hotwords.Rate(r.hot.Limit, r.hot.Cause.Unit)
}

func admittedCell(r *screenRow) string {
	if !r.hot.Admitted.Known() {
		return "-"
	}
	return hotwords.AdmittedRate(r.hot.Admitted, r.hot.Cause.Unit)
}

// state describes the treatment of the key's requests, by an operator's control or by its rule.
func (m *model) state(r *screenRow) string {
	if c := r.control; c != nil {
		return hotwords.Controlled(c.Action) + " " + roughly(c.Until.Sub(m.clock()))
	}
	switch {
	case r.hot == nil:
		return "-"
	case r.hot.Hold != nil:
		return hotwords.HoldState(r.hot.Hold)
	case r.hot.Spared:
		return "spared"
	}
	return string(r.hot.Mode)
}

// roughly formats a duration in its largest unit.
func roughly(d time.Duration) string {
	switch d = max(0, d); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	}
	return fmt.Sprintf("%dh", int(d.Hours()))
}

// table returns the column titles and the rows that fit into height lines.
func (m *model) table(height int) []string {
	if len(m.rows) == 0 {
		return m.empty()
	}
	shown, keyWidth := m.columns()
	var head strings.Builder
	head.WriteString("  ")
	for _, c := range shown {
		head.WriteString(termtext.Pad(c.title, c.width, c.right) + "  ")
	}
	title := head.String() + "KEY"
	if shows := min(height-1, len(m.rows)-m.offset); shows < len(m.rows) {
		title += fmt.Sprintf("  rows %d–%d of %d", m.offset+1, m.offset+shows, len(m.rows))
	}
	lines := []string{termtext.Faint.Render(title)}
	for i := m.offset; i < len(m.rows) && len(lines) < height; i++ {
		lines = append(lines, m.rowLine(&m.rows[i], shown, keyWidth, i == m.cursor))
	}
	return lines
}

// rowLine returns one row. The selected row also has a mark, since there may be no colors.
func (m *model) rowLine(r *screenRow, shown []column, keyWidth int, selected bool) string {
	var b strings.Builder
	b.WriteString("  ")
	for _, c := range shown {
		cell := ""
		if r.hot != nil || c.title == "STATE" || c.title == "RULE" {
			cell = c.cell(m, r)
		}
		b.WriteString(cellOf(cell, c.width, c.right) + "  ")
	}
	b.WriteString(termtext.Shorten(termtext.Printable(r.key.Text), keyWidth))
	line := b.String()
	switch {
	case selected:
		line = ">" + line[1:]
		return lipgloss.NewStyle().Reverse(true).Render(line + strings.Repeat(" ", max(0, m.width-lipgloss.Width(line))))
	case r.control != nil && r.control.Action == published.ControlBlock:
		return termtext.Alarm.Render(line)
	case r.control != nil:
		return termtext.Accent.Render(line)
	case r.hot != nil && r.hot.Ratio >= 2:
		return termtext.Warm.Render(line)
	}
	return line
}

// cellOf fits a text to a cell of the given width. It cuts the end of a longer text.
func cellOf(text string, width int, right bool) string {
	if lipgloss.Width(text) > width {
		text = termtext.Fit(text, width-1) + "…"
	}
	fill := strings.Repeat(" ", max(0, width-lipgloss.Width(text)))
	if right {
		return fill + text
	}
	return text + fill
}

func (m *model) empty() []string {
	s := m.snapshot
	switch {
	case s.Seq == 0 || s.Read.IsZero():
		return nil
	case m.filter != "":
		return []string{"", " No key has this text."}
	}
	words := " Nothing is hot in namespace " + m.namespace + "."
	if s.InstancesTotal == 0 {
		words += " No instance has sent counts in the last ten seconds, either: is this the namespace?"
	}
	return append([]string{"", words}, m.quiet()...)
}
