package accesslog

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestLines(t *testing.T) {
	full := strings.Repeat("x", MaxLine)
	for _, c := range []struct {
		name, text string
		want       []string // "!" marks a line too long
		number     int64    // of the last one
	}{
		{"nothing", "", nil, 0},
		{"newline at the end", "a\nb\n", []string{"a", "b"}, 2},
		{"none at the end", "a\nb", []string{"a", "b"}, 2},
		{"CRLF", "a\r\nb\r\n", []string{"a", "b"}, 2},
		{"blank lines", "\n \t\r\na\n\n\nb\n\n", []string{"a", "b"}, 6},
		{"byte order mark", "\uFEFFa\nb", []string{"a", "b"}, 2},
		{"byte order mark alone", "\uFEFF\nb", []string{"b"}, 2},
		{"byte order mark elsewhere", "a\n\uFEFFb", []string{"a", "\uFEFFb"}, 2},
		{"as long as can be", full + "\na", []string{full, "a"}, 2},
		{"as long as can be, CRLF", full + "\r\na", []string{full, "a"}, 2},
		{"as long as can be, at the end", full, []string{full}, 1},
		{"one byte too long", "a\n" + full + "y\nb\n", []string{"a", "!", "b"}, 3},
		{"two bytes too long, CRLF", full + "yz\r\nb", []string{"!", "b"}, 2},
		{"far too long", "a\n" + full + full + full + "\nb\n", []string{"a", "!", "b"}, 3},
		{"far too long, at the end", "a\n" + full + full, []string{"a", "!"}, 2},
		{"long and blank", strings.Repeat(" ", 2*MaxLine) + "\nb", []string{"!", "b"}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(c.text), iotest.DataErrReader(iotest.HalfReader(strings.NewReader(c.text)))} {
				l := newLines(r)
				var got []string
				var number int64
				var d LineDecoder
				for l.next() {
					trimmed, err := d.trim(l.line)
					line := string(trimmed)
					switch {
					case err != nil:
						if line = string(l.line[:100]); !strings.HasPrefix(c.text, line) && !strings.Contains(c.text, "\n"+line) {
							t.Errorf("the beginning of a line too long is %.20q", line)
						}
						line = "!"
					case line == "":
						continue
					}
					got, number = append(got, line), l.number
				}
				if l.err != nil || !slices.Equal(got, c.want) || number != c.number {
					t.Errorf("%d lines, last is number %d, error %v; want %d, %d", len(got), number, l.err, len(c.want), c.number)
				}
				if l.next() {
					t.Error("there is a line after the last")
				}
			}
		})
	}
}

// Text before a read error is only used if it is a whole line.
func TestLinesBeforeAnError(t *testing.T) {
	broken := errors.New("broken")
	for _, text := range []string{"a\nb\nhalf", "a\nb\n" + strings.Repeat("x", 2*MaxLine)} {
		l := newLines(io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)))
		var got []string
		for l.next() {
			got = append(got, strings.TrimSpace(string(l.line)))
		}
		if !slices.Equal(got, []string{"a", "b"}) || !errors.Is(l.err, broken) {
			t.Errorf("%d lines, error %v", len(got), l.err)
		}
	}
}
