package config

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"
)

// position is a place in a file; line and column count from 1, the column in
// characters.
type position struct{ line, column int }

// text is a file as lines.
type text struct {
	name string
	// body is what YAML reads: without a byte order mark, lines end in \n.
	body string
	// raw are the lines of body, shown the same fit to be printed: what is no
	// text is U+FFFD, and passwords of URLs are masked. Both have the same
	// characters at the same columns.
	raw, shown []string
}

func newText(name string, data []byte) *text {
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	t := &text{name: name, body: strings.ReplaceAll(string(data), "\r\n", "\n")}
	t.raw = strings.Split(t.body, "\n")
	printable := strings.Map(func(r rune) rune {
		if isControl(r) && r != '\n' {
			return utf8.RuneError
		}
		return r // an invalid byte comes as U+FFFD, one for each
	}, t.body)
	t.shown = strings.Split(mask(printable), "\n")
	return t
}

// isControl reports whether YAML forbids the character in a file (c-printable of
// YAML 1.2, 5.1). A carriage return alone is one of them here: editors do not
// agree on whether it ends a line.
func isControl(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' || 0x7F <= r && r < 0xA0 && r != 0x85 ||
		r == 0xFEFF || r == 0xFFFE || r == 0xFFFF
}

// secrets are where a line holds a password or a token: a URL's user info or query,
// and a field of that name, which is refused and may be shown.
var secrets = []struct {
	marker string // without which there is none
	form   *regexp.Regexp
}{
	{"://", regexp.MustCompile(`(://[^\s/:@]*:)(\S+)(@)`)},
	{"password=", regexp.MustCompile(`(password=)([^\s&"']+)()`)},
	{"password", regexp.MustCompile(`(password["']?[ \t]*:[ \t]*)([^\r\n]+)()`)},
	{"secret", regexp.MustCompile(`(\bsecret["']?[ \t]*:[ \t]*)([^\r\n]+)()`)},
	{"hooks.slack.com/", regexp.MustCompile(`(hooks\.slack\.com/services/)([^\s"',}]+)()`)},
	{"token", regexp.MustCompile(`(\btoken["']?[ \t]*:[ \t]*)([^\r\n]+)()`)},
}

// mask hides passwords and keeps every column where it is.
func mask(s string) string {
	for _, secret := range secrets {
		if !strings.Contains(s, secret.marker) {
			continue
		}
		s = secret.form.ReplaceAllStringFunc(s, func(found string) string {
			part := secret.form.FindStringSubmatch(found)
			return part[1] + strings.Repeat("*", utf8.RuneCountInString(part[2])) + part[3]
		})
	}
	return s
}

// line is the number of a line that the file has, the nearest to n.
func (t *text) line(n int) int { return min(max(n, 1), len(t.shown)) }

// readable reports a file that is not text, or too large or empty.
func (d *decoder) readable(data []byte) bool {
	start := position{1, 1}
	switch {
	case len(data) > MaxSize:
		d.report(start, "rules of that size are slow to match: split them by service", "the file is larger than 1 MiB")
		return false
	case strings.TrimSpace(d.text.body) == "":
		d.report(start, topSection.example, "the file is empty")
		return false
	}
	for i, line := range d.text.raw {
		column := 0
		for at, r := range line { // the first of a line; the others are likely the same
			column++
			if r == utf8.RuneError && !strings.HasPrefix(line[at:], "\uFFFD") {
				d.report(position{i + 1, column}, "save the file as UTF-8", "byte 0x%02X is not UTF-8", line[at])
				break
			}
			if isControl(r) {
				d.report(position{i + 1, column}, `remove it, or write it as an escape in double quotes`, "character U+%04X is not allowed", r)
				break
			}
		}
	}
	return len(d.problems) == 0
}
