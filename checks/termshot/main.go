// Command termshot converts a terminal's text and colours into an SVG picture. It
// reads ANSI SGR sequences, as "tmux capture-pane -e -p" prints them, from standard
// input and writes the picture to standard output. The same text makes the same
// picture.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "termshot:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(out)
	draw(w, parse(string(text)))
	return w.Flush()
}

// Sizes in pixels.
const (
	fontSize   = 14
	cellWidth  = 8.4 // width in most monospaced fonts at that size; runs are stretched to it
	lineHeight = 20
	margin     = 18
)

const background = "#0d1117"

func draw(w *bufio.Writer, lines [][]styledText) {
	columns := 0
	for _, line := range lines {
		length := 0
		for _, s := range line {
			length += utf8.RuneCountInString(s.text)
		}
		columns = max(columns, length)
	}
	width := 2*margin + float64(columns)*cellWidth
	height := 2*margin + len(lines)*lineHeight
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="%d">`+"\n",
		width, height, width, height, fontSize)
	fmt.Fprintf(w, `<rect width="%.0f" height="%d" rx="8" fill="%s"/>`+"\n", width, height, background)
	for row, line := range lines {
		column := 0
		for _, s := range line {
			for _, part := range s.split() {
				drawPart(w, part, margin+float64(column)*cellWidth, margin+float64(row*lineHeight))
				column += utf8.RuneCountInString(part.text)
			}
		}
	}
	fmt.Fprintln(w, "</svg>")
}

// split separates a span into words, which are written as text, blanks, and characters that are
// drawn, since they differ from font to font.
func (s styledText) split() []styledText {
	var parts []styledText
	for _, r := range s.text {
		k := kind(r)
		if n := len(parts); n > 0 && k != single {
			if last, _ := utf8.DecodeRuneInString(parts[n-1].text); kind(last) == k && (k == plain || last == r) {
				parts[n-1].text += string(r)
				continue
			}
		}
		parts = append(parts, styledText{string(r), s.style})
	}
	return parts
}

// Kinds of characters.
const (
	plain  = iota
	blank  // nothing to draw
	line   // a run of equal characters is drawn as one line
	single // drawn one by one
)

func kind(r rune) int {
	switch r {
	case ' ':
		return blank
	case '━', '─':
		return line
	case '╸', '│', '▶', '·':
		return single
	}
	return plain
}

// drawPart draws equal cells or a text. Its upper left corner is at x, y.
func drawPart(w *bufio.Writer, part styledText, x, y float64) {
	n := utf8.RuneCountInString(part.text)
	width, middle := float64(n)*cellWidth, y+lineHeight/2
	paint := fmt.Sprintf(`fill="%s"`, part.fg)
	if part.faint {
		paint += ` opacity="0.6"`
	}
	rect := func(x, y, width, height float64) {
		fmt.Fprintf(w, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" %s/>`+"\n", x, y, width, height, paint)
	}
	switch first, _ := utf8.DecodeRuneInString(part.text); first {
	case ' ':
	case '━':
		rect(x, middle-3, width, 6)
	case '╸':
		rect(x, middle-3, width/2, 6)
	case '─':
		rect(x, middle-0.5, width, 1)
	case '│':
		rect(x+cellWidth/2-0.5, y+2, 1, lineHeight-4)
	case '·':
		fmt.Fprintf(w, `<circle cx="%.1f" cy="%.1f" r="1" %s/>`+"\n", x+cellWidth/2, middle, paint)
	case '▶':
		fmt.Fprintf(w, `<path d="M%.1f %.1fv10l%.1f -5z" %s/>`+"\n", x, middle-5, cellWidth-1, paint)
	default:
		if part.bold {
			paint += ` font-weight="bold"`
		}
		fmt.Fprintf(w, `<text x="%.1f" y="%.1f" textLength="%.1f" %s>%s</text>`+"\n", x, middle+5, width, paint, escape.Replace(part.text))
	}
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
