package main

import (
	"fmt"
	"strconv"
	"strings"
)

// style is the look of text, as far as the pictures need it: without background colours.
type style struct {
	fg          string
	bold, faint bool
}

// styledText is text of one style.
type styledText struct {
	text string
	style
}

const foreground = "#d1d7e0"

// palette holds the sixteen colours, for a dark background.
var palette = [16]string{
	"#484f58", "#ff7b72", "#3fb950", "#e3b341", "#58a6ff", "#bc8cff", "#56d4dd", "#d1d7e0",
	"#6e7681", "#ffa198", "#56d364", "#f2cc60", "#79c0ff", "#d2a8ff", "#76e3ea", "#ffffff",
}

// parse splits text into lines of spans. A style lasts until it is changed, across line ends.
// Other escape sequences are dropped.
func parse(text string) [][]styledText {
	var lines [][]styledText
	now := style{fg: foreground}
	for text := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		var spans []styledText
		for text != "" {
			i := strings.IndexByte(text, '\x1b')
			if i < 0 {
				i = len(text)
			}
			if i > 0 {
				spans = append(spans, styledText{text[:i], now})
			}
			text = now.sequence(text[i:])
		}
		lines = append(lines, spans)
	}
	return lines
}

// sequence applies the escape sequence at the beginning of text, if any, and returns
// the rest.
func (s *style) sequence(text string) string {
	if text == "" {
		return ""
	}
	params, ok := strings.CutPrefix(text, "\x1b[")
	if !ok {
		return text[1:]
	}
	end := strings.IndexFunc(params, func(r rune) bool { return r >= '@' && r <= '~' })
	if end < 0 {
		return ""
	}
	if params[end] == 'm' {
		s.set(params[:end])
	}
	return params[end+1:]
}

// set applies the parameters of one SGR sequence (ECMA-48, 8.3.117).
func (s *style) set(params string) {
	var codes []int
	for p := range strings.SplitSeq(params, ";") {
		n, _ := strconv.Atoi(p) // a missing parameter is 0
		codes = append(codes, n)
	}
	for i := 0; i < len(codes); i++ {
		switch c := codes[i]; {
		case c == 0:
			*s = style{fg: foreground}
		case c == 1:
			s.bold = true
		case c == 2:
			s.faint = true
		case c == 22:
			s.bold, s.faint = false, false
		case c >= 30 && c <= 37:
			s.fg = palette[c-30]
		case c >= 90 && c <= 97:
			s.fg = palette[c-90+8]
		case c == 39:
			s.fg = foreground
		case c == 38 || c == 48:
			color, used := extended(codes[i+1:])
			if c == 38 {
				s.fg = color
			}
			i += used
		}
	}
}

// extended returns a colour of 256 ("5;n") or of all ("2;r;g;b"), and the number of codes that
// make it.
func extended(codes []int) (color string, used int) {
	switch {
	case len(codes) >= 4 && codes[0] == 2:
		return rgb(codes[1], codes[2], codes[3]), 4
	case len(codes) < 2 || codes[0] != 5:
		return foreground, len(codes)
	}
	switch n := codes[1] & 0xff; {
	case n < 16:
		return palette[n], 2
	case n < 232: // a cube of six steps
		step := func(i int) int {
			if i == 0 {
				return 0
			}
			return 55 + 40*i
		}
		n -= 16
		return rgb(step(n/36), step(n/6%6), step(n%6)), 2
	default:
		grey := 8 + 10*(n-232)
		return rgb(grey, grey, grey), 2
	}
}

func rgb(r, g, b int) string { return fmt.Sprintf("#%02x%02x%02x", r&0xff, g&0xff, b&0xff) }
