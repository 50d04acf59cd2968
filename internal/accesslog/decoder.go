package accesslog

import (
	"strings"
	"time"
)

// request is one good line. Its slices point into the line.
type request struct {
	nanos  int64 // since the Unix epoch, ≥ 0
	method []byte
	target []byte
	addr   []byte
	status int
	bytes  int64 // -1: unknown
}

// entry copies the request, in one allocation.
func (r *request) entry() Entry {
	var b strings.Builder
	b.Grow(len(r.method) + len(r.addr) + len(r.target))
	b.Write(r.method)
	b.Write(r.addr)
	b.Write(r.target)
	text := b.String()
	m, a := len(r.method), len(r.method)+len(r.addr)
	return Entry{
		Time:   time.Unix(0, r.nanos).UTC(),
		Method: text[:m],
		Addr:   text[m:a],
		Target: text[a:],
		Status: r.status,
		Bytes:  r.bytes,
	}
}

// decoder reads the lines of one file. Its format is settled by the first good
// line, so that one odd line further on cannot be read as something else.
type decoder struct{ format Format }

// decode reads a line, which has no line end and no spaces around it. The error
// is the reason why the line is bad.
func (d *decoder) decode(line []byte, r *request) error {
	format := d.format
	if format == Auto {
		format = guess(line)
	}
	*r = request{bytes: -1}
	var err error
	if format == JSON {
		err = parseJSON(line, r)
	} else {
		err = parseCombined(line, r)
	}
	if err == nil {
		d.format = format
	}
	return err
}

// guess distinguishes the formats: a client's name has no brace.
func guess(line []byte) Format {
	if line[0] == '{' {
		return JSON
	}
	return Combined
}

func (f Format) expected() string {
	const (
		combined = `combined (192.0.2.1 - - [30/Jun/2017:00:00:00 +0000] "GET /search?q=phone HTTP/1.1" 200 512)`
		json     = `JSON lines ({"time":"2017-06-30T00:00:00Z","method":"GET","uri":"/search?q=phone"})`
	)
	switch f {
	case Combined:
		return "expected is " + combined + "; if the log has another format, set it to auto or json"
	case JSON:
		return "expected is " + json + "; if the log has another format, set it to auto or combined"
	}
	return "expected is " + combined + " or " + json + "; the format was detected, and can be set to combined or json"
}
