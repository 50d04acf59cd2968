package accesslog

import (
	"bytes"
	"errors"
	"strings"
)

// maxColumns bounds how many columns of a line are looked at.
const maxColumns = 256

// column is one that is wanted.
type column struct {
	name   string // in the line above; empty: it is known by its number
	number int    // from 0; -1 until its name was seen
	role   role
	rank   uint8
	value  int // of a header or cookie
}

var (
	errColumns = errors.New("it has too few columns")
	errQuotes  = errors.New("a quoted column has no end")
	// errNotRequest is no reason: the line is a heading or a comment.
	errNotRequest = errors.New("the line names the columns")
)

// splitter cuts a line into its columns. It calls f with each, and with whether it is
// escaped in the way of the format; it stops when f returns false.
type splitter func(line []byte, f func(text []byte, escaped bool) bool) error

// splitCSV follows RFC 4180: a column in double quotes may have commas, and quotes twice.
func splitCSV(line []byte, f func([]byte, bool) bool) error {
	for {
		if len(line) == 0 || line[0] != '"' {
			text, rest, more := bytes.Cut(line, []byte{','})
			if !f(bytes.TrimSpace(text), false) || !more {
				return nil
			}
			line = rest
			continue
		}
		end, escaped := 1, false
		for ; end < len(line); end++ {
			if line[end] == '"' {
				if end+1 == len(line) || line[end+1] != '"' {
					break
				}
				escaped = true
				end++
			}
		}
		if end >= len(line) {
			return errQuotes
		}
		if !f(line[1:end], escaped) {
			return nil
		}
		rest := bytes.TrimLeft(line[end+1:], " ")
		if len(rest) == 0 {
			return nil
		}
		if rest[0] != ',' {
			return errQuotes
		}
		line = rest[1:]
	}
}

func splitTSV(line []byte, f func([]byte, bool) bool) error {
	for {
		text, rest, more := bytes.Cut(line, []byte{'\t'})
		if !f(text, bytes.IndexByte(text, '\\') >= 0) || !more {
			return nil
		}
		line = rest
	}
}

// splitSpace has columns between spaces; those in double quotes, with backslashes as Apache
// and nginx write them, or in brackets may have spaces.
func splitSpace(line []byte, f func([]byte, bool) bool) error {
	for {
		line = bytes.TrimLeft(line, " ")
		if len(line) == 0 {
			return nil
		}
		switch line[0] {
		case '"':
			text, rest, found := cutQuoted(line)
			if !found {
				return errQuotes
			}
			if !f(text, true) {
				return nil
			}
			line = rest
		case '[':
			end := bytes.IndexByte(line, ']')
			if end < 0 {
				return errQuotes
			}
			if !f(line[1:end], false) {
				return nil
			}
			line = line[end+1:]
		default:
			text, rest, _ := bytes.Cut(line, []byte{' '})
			if !f(text, false) {
				return nil
			}
			line = rest
		}
	}
}

// plain undoes the escapes of a column.
func (r *request) plain(f Format, text []byte) []byte {
	if f != CSV {
		return unescape(text)
	}
	from := len(r.text)
	for i := 0; i < len(text); i++ {
		r.text = append(r.text, text[i])
		if text[i] == '"' {
			i++ // the second one
		}
	}
	return r.text[from:]
}

// delimited reads lines of columns.
type delimited struct {
	format  Format
	split   splitter
	shape   *shape
	columns []column // of the shape, with their numbers
	named   bool     // some are not found yet
	most    int      // the greatest number
}

func newDelimited(k *description, s *shape) *delimited {
	d := &delimited{format: k.format, split: k.split, shape: s, columns: append([]column(nil), s.columns...)}
	d.settle()
	return d
}

// settle finds out what is known of the columns.
func (d *delimited) settle() {
	d.named, d.most = false, 0
	for _, c := range d.columns {
		d.named = d.named || c.number < 0
		d.most = max(d.most, c.number)
	}
}

// decode reads a line. If columns are wanted by name, the first line names them, or one that
// begins with "#Fields:", as W3C's extended log format has it.
func (d *delimited) decode(line []byte, t *texts, r *request) error {
	if heading, found := bytes.CutPrefix(line, []byte("#Fields:")); found {
		return d.heading(bytes.TrimSpace(heading), r)
	}
	if line[0] == '#' {
		return errNotRequest
	}
	if d.named {
		return d.heading(line, r)
	}
	t.reset(d.shape.values)
	number := 0
	err := d.split(line, func(text []byte, escaped bool) bool {
		for i := range d.columns {
			c := &d.columns[i]
			if c.number != number {
				continue
			}
			if escaped {
				text, escaped = r.plain(d.format, text), false
			}
			if c.role != noRole {
				t.set(c.role, c.rank, text)
			} else {
				t.setExtra(c.value, text)
			}
		}
		number++
		return number <= d.most
	})
	switch {
	case err != nil:
		return err
	case !t.complete():
		return errColumns
	}
	return t.request(d.shape, r)
}

// heading finds the columns that are wanted by name.
func (d *delimited) heading(line []byte, r *request) error {
	split := d.split
	if d.format == TSV && bytes.IndexByte(line, '\t') < 0 { // CloudFront's heading has spaces
		split = splitSpace
	}
	var names []string
	err := split(line, func(text []byte, escaped bool) bool {
		if escaped {
			text = r.plain(d.format, text)
		}
		names = append(names, string(text))
		return len(names) < maxColumns
	})
	if err != nil {
		return err
	}
	found := append([]column(nil), d.columns...)
	for i := range found {
		if c := &found[i]; c.name != "" {
			c.number = -1
			for at, name := range names {
				if name == c.name {
					c.number = at
				}
			}
			if c.number < 0 {
				return &noColumn{c.name, names}
			}
		}
	}
	d.columns = found
	d.settle()
	return errNotRequest
}

// noColumn says that no column has a name.
type noColumn struct {
	name  string
	names []string
}

func (e *noColumn) Error() string {
	return "no column is called " + e.name + "; it has " + excerpt([]byte(strings.Join(e.names, ", ")))
}
