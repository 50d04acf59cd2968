package config

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Problem is one certain or probable error of a file, with its place.
type Problem struct {
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	// Line and Column count from 1; columns are Unicode characters.
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
	// Hint is advice about it.
	Hint string `json:"hint"`
	// Source is the line, with passwords of URLs masked.
	Source string `json:"-"`

	cause error
}

// Severity is the consequence of a [Problem].
type Severity string

// Severities.
const (
	SeverityError   Severity = "error"   // the file is not used
	SeverityWarning Severity = "warning" // the file is used, and may not do what was intended
)

// Problems are all problems of a file, in the order of the file. They are an error, whose text
// is the text of [Problems.WriteText].
type Problems []Problem

// maxProblems bounds the problems of a file that is not a hotparam.yaml at all.
const maxProblems = 100

// arranged sorts the problems, replaces the last by their number if there are too many, and
// limits every column to the length of its line.
func (p Problems) arranged() Problems {
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if more := len(p) - maxProblems; more > 0 {
		p = p[:maxProblems+1]
		p[maxProblems].Message = fmt.Sprintf("%d more problems from here on", more)
		p[maxProblems].Hint = "correct those above first"
	}
	for i := range p {
		p[i].Column = min(max(p[i].Column, 1), utf8.RuneCountInString(p[i].Source)+1)
	}
	return p
}

// Error returns the text of all problems.
func (p Problems) Error() string {
	var b strings.Builder
	_ = p.WriteText(&b) // a Builder never fails
	return strings.TrimSuffix(b.String(), "\n")
}

// Unwrap returns the causes of problems that come from another error.
func (p Problems) Unwrap() []error {
	var causes []error
	for _, problem := range p {
		if problem.cause != nil {
			causes = append(causes, problem.cause)
		}
	}
	return causes
}

// WriteText writes the problems for people: for each its place and message, its line, a caret
// under its column, and the hint.
//
//	hotparam.yaml:7:17: hot.rate "200": want N/D, for example "200/s" or "60/1m"
//	      hot: {rate: 200}
//	                  ^
//	  hint: …
func (p Problems) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	for _, problem := range p {
		severity := ""
		if problem.Severity == SeverityWarning {
			severity = "warning: "
		}
		fmt.Fprintf(b, "%s:%d:%d: %s%s\n", problem.File, problem.Line, problem.Column, severity, problem.Message)
		if strings.TrimSpace(problem.Source) != "" {
			line, caret := excerpt(problem.Source, problem.Column)
			fmt.Fprintf(b, "  %s\n  %s\n", line, caret)
		}
		fmt.Fprintf(b, "  hint: %s\n", problem.Hint)
	}
	return b.Flush()
}

// before and behind are the numbers of characters that an excerpt shows before and after its
// column.
const before, behind = 80, 60

// excerpt returns the part of a line around a column, and a line with a caret under that
// column. Tabs stay tabs in both, so the caret is right however wide a terminal shows them.
func excerpt(line string, column int) (string, string) {
	runes := []rune(line)
	index := min(column-1, len(runes))
	var shown, caret strings.Builder
	from, to := max(0, index-before), min(len(runes), index+behind)
	if from > 0 {
		shown.WriteRune('…')
		caret.WriteByte(' ')
	}
	for _, r := range runes[from:index] {
		switch {
		case r == '\t':
			caret.WriteByte('\t')
		case isWide(r):
			caret.WriteString("  ")
		case !unicode.Is(unicode.Mn, r): // a combining mark has no width
			caret.WriteByte(' ')
		}
	}
	shown.WriteString(strings.TrimRight(string(runes[from:to]), " \t"))
	if to < len(runes) {
		shown.WriteRune('…')
	}
	caret.WriteByte('^')
	return shown.String(), caret.String()
}

// isWide reports whether a terminal shows a character in two cells. It covers the scripts and
// blocks of UAX #11 that are wide throughout.
func isWide(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana) ||
		'！' <= r && r <= '｠' || '\U0001F300' <= r && r <= '\U0001FAFF'
}
