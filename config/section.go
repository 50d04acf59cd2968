package config

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hotparam/hotparam/internal/base"
)

// fileNode is a value of the file, with its place.
type fileNode struct {
	kind   nodeKind
	pos    position
	text   string      // text of a scalar
	fields []mapField  // fields of a map, in the order of the file, each name once
	items  []*fileNode // items of a list

	bad        bool // whether it has been reported
	incomplete bool // whether an unknown field of it has been reported
}

type mapField struct {
	name  string
	pos   position
	value *fileNode
}

type nodeKind uint8

const (
	nullKind nodeKind = iota
	scalarKind
	listKind
	mapKind
)

var kindNames = [...]string{"nothing", "text", "a list", "fields"}

func (k nodeKind) String() string { return kindNames[k] }

// decoder turns nodes into rules, and collects their errors. Its methods accept a nil node for
// a value that is absent or was reported.
type decoder struct {
	text      *text
	problems  Problems
	warnings  Problems
	ruleNodes []ruleNodes // nodes of each rule
}

// report adds an error.
func (d *decoder) report(pos position, hint, format string, args ...any) {
	p := d.problem(pos, hint, fmt.Sprintf(format, args...))
	p.Severity = SeverityError
	d.problems = append(d.problems, p)
}

// warn adds a warning.
func (d *decoder) warn(pos position, hint, format string, args ...any) {
	p := d.problem(pos, hint, fmt.Sprintf(format, args...))
	p.Severity = SeverityWarning
	d.warnings = append(d.warnings, p)
}

func (d *decoder) problem(pos position, hint, message string) Problem {
	line := d.text.nearestLine(pos.line)
	return Problem{
		File: d.text.name, Line: line, Column: pos.column,
		Message: message, Hint: hint, Source: d.text.shown[line-1],
	}
}

// reject reports a value as bad.
func (d *decoder) reject(n *fileNode, hint, format string, args ...any) {
	n.bad = true
	d.report(n.pos, hint, format, args...)
}

// values are the fields of one section that are in the file.
type values map[string]*fileNode

// get returns a field's value, or nil if it is absent or empty.
func (v values) get(name string) *fileNode { return v[name] }

// has reports whether the field is in the file, valid or not.
func (v values) has(name string) bool { _, found := v[name]; return found }

// fields returns the values of a map, and reports fields that it must not have. It returns nil if
// the node is not a map.
func (d *decoder) fields(n *fileNode, s section) values {
	if n == nil {
		return nil
	}
	if n.kind != mapKind {
		d.reject(n, s.example, "%s: want fields, found %s", s.name, n.kind)
		return nil
	}
	known, found := s.fields.names(), make(values, len(n.fields))
	for _, f := range n.fields {
		refused, isRefused := refusedFields[f.name]
		if !isRefused {
			refused, isRefused = refusedFields[s.prefix+f.name]
		}
		n.incomplete = n.incomplete || !slices.Contains(known, f.name)
		switch {
		case slices.Contains(known, f.name) && f.value.kind == nullKind:
			d.report(f.pos, "give it a value or remove it", "%s%s is empty", s.prefix, f.name)
			found[f.name], f.value.bad = nil, true
		case slices.Contains(known, f.name):
			found[f.name] = f.value
		case isRefused:
			d.report(f.pos, fmt.Sprintf("this file is shared and kept in version control: name a file that holds the %s in %s_file, or a variable in %[2]s_env", refused, f.name),
				"%s%s: a %s does not belong in this file", s.prefix, f.name, refused)
		default:
			d.report(f.pos, nearest(f.name, known, "known are "+strings.Join(known, ", ")), "unknown field %s in %s", quote(f.name), s.name)
		}
	}
	return found
}

// scalar reads text, a number or a boolean as text.
func (d *decoder) scalar(n *fileNode, what string) (string, bool) {
	if n == nil {
		return "", false
	}
	if n.kind != scalarKind {
		d.reject(n, "write one word, or a text in quotes", "%s: want text, found %s", what, n.kind)
		return "", false
	}
	return n.text, true
}

// choice reads one of a few words.
func (d *decoder) choice(n *fileNode, what string, words ...string) (string, bool) {
	s, ok := d.scalar(n, what)
	if !ok || slices.Contains(words, s) {
		return s, ok
	}
	d.rejectChoice(n, nearest(s, words, "for example "+words[0]), what, words)
	return "", false
}

// rejectChoice reports a text that is none of words.
func (d *decoder) rejectChoice(n *fileNode, hint, what string, words []string) {
	d.reject(n, hint, "%s %s: want %s", what, quote(n.text), strings.Join(words, " or "))
}

// nearest returns the hint for a word that is none of words: the one that s is nearly, or
// otherwise.
func nearest(s string, words []string, otherwise string) string {
	if near := base.NearestWord(s, words); near != "" {
		return didYouMean(near)
	}
	return otherwise
}

func didYouMean(s string) string { return fmt.Sprintf("did you mean %q?", s) }

// duration reads a time of at least 0. It returns otherwise if there is none or it is bad.
func (d *decoder) duration(n *fileNode, what, hint string, otherwise time.Duration) time.Duration {
	s, ok := d.scalar(n, what)
	if !ok {
		return otherwise
	}
	t, err := base.ParseDuration(strings.TrimSpace(s))
	if err != nil || t < 0 {
		d.reject(n, hint, "%s %s: want a duration, for example 10s or 1m", what, quote(s))
		return otherwise
	}
	return t
}

// list reads a list.
func (d *decoder) list(n *fileNode, what string) []*fileNode {
	if n == nil {
		return nil
	}
	if n.kind != listKind {
		d.reject(n, "a list is written [a, b]", "%s: want a list, found %s", what, n.kind)
		return nil
	}
	return n.items
}

// oneOrItems returns the items of a list, or n alone if it is not a list.
func oneOrItems(n *fileNode) []*fileNode {
	if n.kind == listKind {
		return n.items
	}
	return []*fileNode{n}
}

// some reads a list of at least one and at most limit things.
func (d *decoder) some(n *fileNode, what, example string, limit int, things string) []*fileNode {
	items := d.list(n, what)
	if n.kind == listKind && (len(items) == 0 || len(items) > limit) {
		d.reject(n, example, "%s: want 1 to %d %s, found %d", what, limit, things, len(items))
	}
	return items
}

// quote returns a value of the file in the form for messages: on one line, not too long, and
// without passwords.
func quote(s string) string {
	const limit = 64
	s = mask(s)
	if utf8.RuneCountInString(s) > limit {
		s = string([]rune(s)[:limit]) + "…"
	}
	return fmt.Sprintf("%q", s)
}
