package accesslog

import (
	"encoding/binary"
	"errors"
	"strings"
	"time"
)

// parsedLine is one good line. Its slices point into the line or into text.
type parsedLine struct {
	nanos  int64 // time since the Unix epoch, ≥ 0
	method []byte
	target []byte
	addr   []byte
	status int
	bytes  int64         // -1 if unknown
	took   time.Duration // 0 if unknown
	values []byte        // written by appendValue; empty if none were wanted

	text []byte // buffer for values that differ from the line; reused for the next line
}

// reset clears the request for the next line.
func (r *parsedLine) reset() { *r = parsedLine{bytes: -1, text: r.text[:0], values: r.values[:0]} }

// entry returns a copy of the request, made with one allocation.
func (r *parsedLine) entry() Entry {
	var b strings.Builder
	b.Grow(len(r.method) + len(r.addr) + len(r.target) + len(r.values))
	b.Write(r.method)
	b.Write(r.addr)
	b.Write(r.target)
	b.Write(r.values)
	text := b.String()
	m := len(r.method)
	a := m + len(r.addr)
	t := a + len(r.target)
	return Entry{
		Time:   time.Unix(0, r.nanos).UTC(),
		Method: text[:m],
		Addr:   text[m:a],
		Target: text[a:t],
		Status: r.status,
		Bytes:  r.bytes,
		Took:   r.took,
		values: text[t:],
	}
}

// appendValue appends a header or cookie: its length plus one and its text, or 0 if it is
// missing.
func appendValue(to, value []byte) []byte {
	if value == nil {
		return append(to, 0)
	}
	return append(binary.AppendUvarint(to, uint64(len(value))+1), value...)
}

// Value returns the value of the number-th header or cookie of [Options.Values], and whether the
// log has it.
func (e *Entry) Value(number int) (value string, ok bool) {
	tail := e.values
	for ; tail != ""; number-- {
		var size uint64
		size, tail = cutUvarint(tail)
		if size == 0 {
			if number == 0 {
				return "", false
			}
			continue
		}
		if value, tail = tail[:size-1], tail[size-1:]; number == 0 {
			return value, true
		}
	}
	return "", false
}

// decoder decodes the lines of one file. The first good line settles its format, so that an odd
// line further on cannot be read as another format.
type decoder struct {
	format Format
	fields *Fields
	wanted []string // headers and cookies

	shapes  map[Format]*shape
	columns *delimited
	texts   texts
}

// decode decodes a line, which has no line end and no spaces around it. The error is the reason
// why the line is bad.
func (d *decoder) decode(line []byte, r *parsedLine) error {
	r.reset()
	if d.format != Auto {
		return d.decodeAs(d.format, line, r)
	}
	if line[0] != '{' {
		format := Combined
		if line[0] == '[' {
			format = Envoy
		}
		err := d.decodeAs(format, line, r)
		if err == nil {
			d.format = format
		}
		return err
	}
	for i := range formats {
		k := &formats[i]
		if k.fields == nil {
			continue
		}
		r.reset()
		signed, err := d.shape(k.format).decodeJSON(line, &d.texts, r)
		switch {
		case errors.Is(err, errJSON):
			return err
		case errors.Is(err, errFields):
			continue
		case !signed && k.format != JSON:
			continue
		case err == nil:
			d.format = k.format
		}
		return err
	}
	return errFields
}

// decodeAs decodes a line of a format.
func (d *decoder) decodeAs(f Format, line []byte, r *parsedLine) error {
	if f == Combined {
		return parseCombined(line, r)
	}
	if k := f.description(); k.isDelimited() || k.text != "" && line[0] == '[' {
		return d.delimited(k).decode(line, &d.texts, r)
	}
	_, err := d.shape(f).decodeJSON(line, &d.texts, r)
	return err
}

// shape returns the shape of a kind of JSON.
func (d *decoder) shape(f Format) *shape {
	s := d.shapes[f]
	if s != nil {
		return s
	}
	if d.fields != nil {
		s, _ = d.fields.shape(false, d.wanted) // Open has checked them
	} else {
		s = f.description().jsonShape(d.wanted)
	}
	if d.shapes == nil {
		d.shapes = make(map[Format]*shape)
	}
	d.shapes[f] = s
	return s
}

// delimited returns the decoder of lines of columns.
func (d *decoder) delimited(k *description) *delimited {
	if d.columns == nil {
		s := k.textShape(d.wanted)
		if k.isDelimited() {
			s, _ = d.fields.shape(true, d.wanted) // Open has checked them
		}
		d.columns = newDelimited(k, s)
	}
	return d.columns
}
