package accesslog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
)

// request is one good line. Its slices point into the line, or into text.
type request struct {
	nanos  int64 // since the Unix epoch, ≥ 0
	method []byte
	target []byte
	addr   []byte
	status int
	bytes  int64         // -1: unknown
	took   time.Duration // 0: unknown
	values []byte        // by appendValue; empty: none were wanted

	text []byte // room for what is not in the line as it is; used again for the next one
}

// reset makes room for the next line.
func (r *request) reset() { *r = request{bytes: -1, text: r.text[:0], values: r.values[:0]} }

// entry copies the request, in one allocation.
func (r *request) entry() Entry {
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

// appendValue appends a header or cookie: its length and one, 0 for one that is not there,
// then its text.
func appendValue(to, value []byte) []byte {
	if value == nil {
		return append(to, 0)
	}
	return append(binary.AppendUvarint(to, uint64(len(value))+1), value...)
}

// Value returns a header or cookie of [Options.Values] by its number there, and whether the
// log has it.
func (e *Entry) Value(number int) (value string, ok bool) {
	rest := e.values
	for ; rest != ""; number-- {
		var size uint64
		size, rest = cutUvarint(rest)
		if size == 0 {
			if number == 0 {
				return "", false
			}
			continue
		}
		if value, rest = rest[:size-1], rest[size-1:]; number == 0 {
			return value, true
		}
	}
	return "", false
}

// decoder reads the lines of one file. Its format is settled by the first good
// line, so that one odd line further on cannot be read as something else.
type decoder struct {
	format Format
	fields *Fields
	wanted []string // headers and cookies

	shapes  map[Format]*shape
	columns *delimited
	texts   texts
}

// decode reads a line, which has no line end and no spaces around it. The error
// is the reason why the line is bad.
func (d *decoder) decode(line []byte, r *request) error {
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
	for _, k := range known {
		r.reset()
		s := d.shape(k.format)
		signed, err := s.decodeJSON(line, &d.texts, r)
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

// decodeAs reads a line of a format.
func (d *decoder) decodeAs(f Format, line []byte, r *request) error {
	switch {
	case f == Combined:
		return parseCombined(line, r)
	case splitters[f] != nil:
		return d.delimited(f).decode(line, &d.texts, r)
	case f == Envoy && line[0] == '[':
		return d.envoyText().decode(line, &d.texts, r)
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
		s, _ = d.fields.shape(false, d.wanted) // Open has tried it
	} else {
		s = knownShape(f, d.wanted)
	}
	if d.shapes == nil {
		d.shapes = make(map[Format]*shape)
	}
	d.shapes[f] = s
	return s
}

func (d *decoder) delimited(f Format) *delimited {
	if d.columns == nil {
		s, _ := d.fields.shape(true, d.wanted) // Open has tried it
		d.columns = newDelimited(f, s)
	}
	return d.columns
}

// envoyText reads Envoy's default format, which is text:
//
//	[2026-11-23T10:46:01.272Z] "GET /search?q=phone HTTP/1.1" 200 - 0 5 0 - "-" "curl/8" "id" "host" "upstream"
func (d *decoder) envoyText() *delimited {
	if d.columns == nil {
		d.columns = newDelimited(Space, &shape{unit: time.Millisecond, values: len(d.wanted), forwarded: true, columns: []column{
			{number: 0, role: roleTime, value: -1}, {number: 1, role: roleRequest, value: -1}, {number: 2, role: roleStatus, value: -1},
			{number: 5, role: roleBytes, value: -1}, {number: 6, role: roleDuration, value: -1}, {number: 8, role: roleCaller, value: -1},
		}})
	}
	return d.columns
}

func (f Format) expected() string {
	const (
		combined = `combined (192.0.2.1 - - [30/Jun/2017:00:00:00 +0000] "GET /search?q=phone HTTP/1.1" 200 512)`
		json     = `JSON lines ({"time":"2017-06-30T00:00:00Z","method":"GET","uri":"/search?q=phone"})`
		fields   = "any other log is read with --fields, which says where a line has what"
	)
	switch f {
	case Combined:
		return "expected is " + combined + "; if the log has another format, set it to auto or json"
	case JSON:
		return "expected is " + json + "; if the log has another format, set it to auto or combined"
	case Auto:
		return "expected is " + combined + " or " + json + ", or the JSON of Caddy, Traefik, Envoy or nginx; the format was detected, and can be set to combined or json; " + fields
	}
	return fmt.Sprintf("expected is %s; set the format to auto to have it detected; %s", f.words(), fields)
}

func (f Format) words() string {
	switch f {
	case Caddy:
		return "Caddy's JSON (ts, request.method, request.uri)"
	case Traefik:
		return "Traefik's JSON (StartUTC, RequestMethod, RequestPath)"
	case Envoy:
		return "Envoy's default text or JSON with start_time, method, path and response_code"
	case Nginx:
		return "nginx's JSON with time_iso8601, msec or time_local, and request or request_method and request_uri"
	}
	return string(f) + " lines with the fields that were given"
}
