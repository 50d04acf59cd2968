package accesslog

import (
	"errors"
	"testing"
	"time"
)

// lineCase is a line, and either its entry or the reason why it is bad.
type lineCase struct {
	name, line string
	want       Entry
	reason     error
}

func (c lineCase) run(t *testing.T, format Format) {
	t.Run(c.name, func(t *testing.T) {
		d, r := decoder{format: format}, parsedLine{}
		err := d.decode([]byte(c.line), &r)
		if !errors.Is(err, c.reason) {
			t.Fatalf("%s\nreason %v, want %v", c.line, err, c.reason)
		}
		if err != nil {
			return
		}
		if got := r.entry(); got != c.want {
			t.Errorf("%s\ngot  %+v\nwant %+v", c.line, got, c.want)
		}
		if d.format == Auto {
			t.Error("a good line did not settle the format")
		}
	})
}

var midnight = time.Date(2017, 6, 30, 0, 0, 0, 0, time.UTC)

func TestFormatIsSettledByTheFirstGoodLine(t *testing.T) {
	const (
		combined = `- - - [30/Jun/2017:00:00:00 +0000] "GET / HTTP/1.1" 200 1`
		json     = `{"time":0,"method":"GET","uri":"/"}`
	)
	for _, c := range []struct{ good, other string }{{combined, json}, {json, combined}} {
		d, r := decoder{format: Auto}, parsedLine{}
		for _, bad := range []string{"{", "hello", "[]"} {
			if d.decode([]byte(bad), &r) == nil || d.format != Auto {
				t.Fatalf("%q was read as %s", bad, d.format)
			}
		}
		if err := d.decode([]byte(c.good), &r); err != nil {
			t.Fatal(err)
		}
		if d.decode([]byte(c.other), &r) == nil {
			t.Errorf("after %q, %q was accepted", c.good, c.other)
		}
	}
	for _, c := range []struct {
		format Format
		line   string
	}{{JSON, combined}, {Combined, json}} {
		d := decoder{format: c.format}
		if d.decode([]byte(c.line), &parsedLine{}) == nil {
			t.Errorf("%q was accepted as %s", c.line, c.format)
		}
	}
}

func TestParseFormat(t *testing.T) {
	for _, f := range []Format{Auto, Combined, JSON, Caddy, Traefik, Envoy, Nginx, CSV, TSV, Space} {
		if got, err := ParseFormat(string(f)); got != f || err != nil {
			t.Errorf("%s: %s, %v", f, got, err)
		}
	}
	for _, s := range []string{"", "xml", "JSON"} {
		if f, err := ParseFormat(s); err == nil {
			t.Errorf("%q is %q", s, f)
		}
	}
}
