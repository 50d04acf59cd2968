package accesslog

import (
	"bytes"
	"errors"
	"fmt"
)

// LineDecoder decodes the lines of one log one by one, to follow a log as it grows. As in [Log],
// the first good line decides the format. It is not safe for concurrent use.
type LineDecoder struct {
	codec   decoder
	request parsedLine
	begun   bool
}

// MaxLine is the length of the longest line that is read, in bytes and without its end.
const MaxLine = 1 << 20

var (
	errLong = errors.New("the line is longer than 1 MiB")
	bom     = []byte("\uFEFF")
)

// NewLineDecoder returns a decoder with the format, the fields and the values of o.
func NewLineDecoder(o Options) (*LineDecoder, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("access log: %w", err)
	}
	return &LineDecoder{codec: decoder{format: o.Format, fields: o.Fields, wanted: o.Values}}, nil
}

// Decode decodes a line, with or without its end. ok is false for a line that is not meant to be
// a request: a blank line, a comment, a heading. The error is the reason why a line is bad.
func (d *LineDecoder) Decode(line []byte) (e Entry, ok bool, err error) {
	if ok, err = d.decode(line, &d.request); ok {
		e = d.request.entry()
	}
	return e, ok, err
}

// decode is Decode without a copy of the request.
func (d *LineDecoder) decode(line []byte, r *parsedLine) (ok bool, err error) {
	if line, err = d.trim(line); err != nil || len(line) == 0 {
		return false, err
	}
	err = d.codec.decode(line, r)
	if errors.Is(err, errNotRequest) {
		return false, nil
	}
	return err == nil, err
}

// trim returns a line without its end and the spaces around it, and the first one without a byte
// order mark.
func (d *LineDecoder) trim(line []byte) ([]byte, error) {
	if !d.begun {
		line, d.begun = bytes.TrimPrefix(line, bom), true
	}
	line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte{'\n'}), []byte{'\r'})
	if len(line) > MaxLine {
		return nil, errLong
	}
	return bytes.TrimSpace(line), nil
}

// NeedsHeading reports whether columns are wanted by name and no line has named them yet. A
// reader that begins in the middle of a file then has to read its beginning first.
func (d *LineDecoder) NeedsHeading() bool {
	k := d.codec.format.description()
	return k.isDelimited() && d.codec.delimited(k).named
}

// Excerpt returns the beginning of a line, safe to print on a terminal.
func Excerpt(line []byte) string { return excerpt(bytes.TrimSpace(line)) }
