package termtext

import "charm.land/lipgloss/v2"

// Styles take their colours from the terminal's own theme. Faint is used rather than grey, which
// some themes make unreadable.
var (
	Bold   = lipgloss.NewStyle().Bold(true)
	Faint  = lipgloss.NewStyle().Faint(true)
	Calm   = lipgloss.NewStyle().Foreground(lipgloss.Green)
	Warm   = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	Alarm  = lipgloss.NewStyle().Foreground(lipgloss.Red)
	Accent = lipgloss.NewStyle().Foreground(lipgloss.Cyan)
)
