package termtext

import (
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
)

// Fit cuts a line, which may have styles, to width columns.
func Fit(line string, width int) string { return lipgloss.NewStyle().MaxWidth(width).Render(line) }

// Pad fills text up to width characters: before it if right is set, otherwise after it. It counts
// characters and not columns, since tables hold keys, whose wide characters are rare.
func Pad(text string, width int, right bool) string {
	fill := strings.Repeat(" ", max(0, width-len([]rune(text))))
	if right {
		return fill + text
	}
	return text + fill
}

// Shorten cuts a key's text to width characters. It leaves out the beginning of the path, by
// whole segments if possible, since the end is the most specific.
func Shorten(text string, width int) string {
	r := []rune(text)
	switch {
	case len(r) <= width:
		return text
	case width < 1:
		return ""
	}
	method := slices.Index(r, ' ') + 1
	if method > width/3 {
		method = 0
	}
	tail := r[len(r)-(width-method-1):]
	if i := slices.IndexFunc(tail, func(r rune) bool { return r == '/' || r == '?' }); i >= 0 && i < len(tail)/2 {
		tail = tail[i:]
	}
	return string(r[:method]) + "…" + string(tail)
}

// Bar draws a part of the highest amount, in eighths of a character.
func Bar(n, highest int64, width int) string {
	eighths := int(n * 8 * int64(width) / highest)
	bar := strings.Repeat("█", eighths/8)
	if part := eighths % 8; part > 0 {
		bar += string([]rune(" ▏▎▍▌▋▊▉")[part])
	}
	return bar
}
