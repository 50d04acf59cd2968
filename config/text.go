package config

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"
)

// position is a place in a file. line and column count from 1, the column in characters.
type position struct{ line, column int }

// text is a file split into lines.
type text struct {
	name string
	// body is the input of YAML: without a byte order mark, and with \n as the line end.
	body string
	// raw are the lines of body. shown are the same lines in a printable form: invalid text
	// is U+FFFD, and passwords of URLs are masked. Both have the same characters at the same
	// columns.
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
		return r // each invalid byte arrives as one U+FFFD
	}, t.body)
	t.shown = strings.Split(mask(printable), "\n")
	return t
}

// isControl reports whether YAML forbids the character in a file (c-printable of YAML 1.2,
// 5.1). Here that includes a lone carriage return: editors do not agree on whether it ends a
// line.
func isControl(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' || 0x7F <= r && r < 0xA0 && r != 0x85 ||
		r == 0xFEFF || r == 0xFFFE || r == 0xFFFF
}

// secrets find passwords and tokens in a line: a URL's user info or query, and a field named
// password, secret or token (such a field is rejected, but the error shows its line).
var secrets = []struct {
	marker string // text that every such line contains
	form   *regexp.Regexp
}{
	{"://", regexp.MustCompile(`(://[^\s/:@]*:)(\S+)(@)`)},
	{"password=", regexp.MustCompile(`(password=)([^\s&"']+)()`)},
	{"password", regexp.MustCompile(`(password["']?[ \t]*:[ \t]*)([^\r\n]+)()`)},
	{"secret", regexp.MustCompile(`(\bsecret["']?[ \t]*:[ \t]*)([^\r\n]+)()`)},
	{"hooks.slack.com/", regexp.MustCompile(`(hooks\.slack\.com/services/)([^\s"',}]+)()`)},
	{"token", regexp.MustCompile(`(\btoken["']?[ \t]*:[ \t]*)([^\r\n]+)()`)},
}

// mask hides passwords and keeps all columns.
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

// nearestLine returns the number of the line nearest to n that the file has.
func (t *text) nearestLine(n int) int { return min(max(n, 1), len(t.shown)) }

// readable reports a file that is not text, too large or empty. It returns false then.
func (d *decoder) readable(data []byte) bool {
	start := position{1, 1}
	switch {
	case len(data) > MaxSize:
		d.report(start, "rules of that size are slow to match: split them by service", "the file is larger than 1 MiB")
		return false
	case strings.TrimSpace(d.text.body) == "":
		d.report(start, fileExample, "the file is empty")
		return false
	}
	for i, line := range d.text.raw {
		column := 0
		for index, r := range line { // the first one in a line; others are likely the same
			column++
			if r == utf8.RuneError && !strings.HasPrefix(line[index:], "\uFFFD") {
				d.report(position{i + 1, column}, "save the file as UTF-8", "byte 0x%02X is not UTF-8", line[index])
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
