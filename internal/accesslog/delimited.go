package accesslog

import (
	"bytes"
	"errors"
	"strings"
)

// maxColumns bounds the columns of a line that are read.
const maxColumns = 256

// wantedColumn is one wanted column.
type wantedColumn struct {
	name   string // name in the heading; empty if it is known by its number
	number int    // number from 0; -1 until its name was found
	role   role
	rank   uint8
	value  int // number of a header or cookie
}

var (
	errColumns = errors.New("it has too few columns")
	errQuotes  = errors.New("a quoted column has no end")
	// errNotRequest marks a heading or a comment, which is not bad.
	errNotRequest = errors.New("the line names the columns")
)

// splitter splits a line into its columns. It calls f with each, and with whether the column is
// escaped in the way of the format. It stops when f returns false.
type splitter func(line []byte, f func(text []byte, escaped bool) bool) error

// splitCSV follows RFC 4180: a column in double quotes may contain commas, and doubled quotes.
func splitCSV(line []byte, f func([]byte, bool) bool) error {
	for {
		if len(line) == 0 || line[0] != '"' {
			text, tail, more := bytes.Cut(line, []byte{','})
			if !f(bytes.TrimSpace(text), false) || !more {
				return nil
			}
			line = tail
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
		tail := bytes.TrimLeft(line[end+1:], " ")
		if len(tail) == 0 {
			return nil
		}
		if tail[0] != ',' {
			return errQuotes
		}
		line = tail[1:]
	}
}

func splitTSV(line []byte, f func([]byte, bool) bool) error {
	for {
		text, tail, more := bytes.Cut(line, []byte{'\t'})
		if !f(text, bytes.IndexByte(text, '\\') >= 0) || !more {
			return nil
		}
		line = tail
	}
}

// splitSpace splits at spaces. Columns in brackets, or in double quotes with backslashes as
// Apache and nginx write them, may contain spaces.
func splitSpace(line []byte, f func([]byte, bool) bool) error {
	for {
		line = bytes.TrimLeft(line, " ")
		if len(line) == 0 {
			return nil
		}
		switch line[0] {
		case '"':
			text, tail, found := cutQuoted(line)
			if !found {
				return errQuotes
			}
			if !f(text, true) {
				return nil
			}
			line = tail
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
			text, tail, _ := bytes.Cut(line, []byte{' '})
			if !f(text, false) {
				return nil
			}
			line = tail
		}
	}
}

// plain decodes the escapes of a column.
func (r *parsedLine) plain(f Format, text []byte) []byte {
	if f != CSV {
		return unescape(text)
	}
	from := len(r.text)
	for i := 0; i < len(text); i++ {
		r.text = append(r.text, text[i])
		if text[i] == '"' {
			i++ // skip the second quote
		}
	}
	return r.text[from:]
}

// delimited decodes lines of columns.
type delimited struct {
	format     Format
	split      splitter
	shape      *shape
	columns    []wantedColumn // columns of the shape, with their numbers
	named      bool           // some columns have not been found yet
	lastColumn int            // greatest column number
}

func newDelimited(k *description, s *shape) *delimited {
	d := &delimited{format: k.format, split: k.split, shape: s, columns: append([]wantedColumn(nil), s.columns...)}
	d.settle()
	return d
}

// settle updates named and lastColumn from the columns.
func (d *delimited) settle() {
	d.named, d.lastColumn = false, 0
	for _, c := range d.columns {
		d.named = d.named || c.number < 0
		d.lastColumn = max(d.lastColumn, c.number)
	}
}

// decode decodes a line. If columns are wanted by name, the first line names them, or one that
// begins with "#Fields:", as in W3C's extended log format.
func (d *delimited) decode(line []byte, t *texts, r *parsedLine) error {
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
		return number <= d.lastColumn
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
func (d *delimited) heading(line []byte, r *parsedLine) error {
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
	found := append([]wantedColumn(nil), d.columns...)
	for i := range found {
		if c := &found[i]; c.name != "" {
			c.number = -1
			for number, name := range names {
				if name == c.name {
					c.number = number
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

// noColumn is the error of a name that no column has.
type noColumn struct {
	name  string
	names []string
}

func (e *noColumn) Error() string {
	return "no column is called " + e.name + "; it has " + excerpt([]byte(strings.Join(e.names, ", ")))
}
