package follow

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/accesslog"
)

// A truncated log is read as a new one: whatever it was before, its new content gives the same
// requests as in a file of its own.
func TestTruncatedIsReadAsNew(t *testing.T) {
	fields, err := accesslog.ParseFields("time=ts,method=method,uri=uri", "s")
	if err != nil {
		t.Fatal(err)
	}
	named := accesslog.Options{Format: accesslog.CSV, Fields: fields}
	const (
		columns  = "ts,method,uri\n1790000000,GET,/a?q=1\n"
		turned   = "uri,ts,method\n/b?q=2,1790000001,GET\n"
		combined = `192.0.2.1 - - [27/Nov/2026:10:00:00 +0000] "GET /a?q=1 HTTP/1.1" 200 5 "-" "-"` + "\n"
		caddy    = `{"level":"info","ts":1790000000.5,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"192.0.2.1","proto":"HTTP/1.1","method":"GET","host":"a","uri":"/c?q=3"},"duration":0.01,"size":5,"status":200}` + "\n"
		bom      = "\xef\xbb\xbf"
	)
	for _, c := range []struct {
		name        string
		options     accesslog.Options
		before, now string
		want        string
	}{
		{"the same columns", named, columns + columns[len("ts,method,uri\n"):], columns, "/a?q=1"},
		{"other columns", named, columns + turned, turned, "/b?q=2"},
		{"another format", accesslog.Options{}, caddy + caddy, combined, "/a?q=1"},
		{"a byte order mark", named, columns + turned, bom + turned, "/b?q=2"},
		{"half a line before", accesslog.Options{}, caddy + caddy[:200], caddy, "/c?q=3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "access.log")
			write := func(text string) {
				t.Helper()
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			write(c.before)
			f, err := openFile(path, time.Now(), c.options)
			if err != nil {
				t.Fatal(err)
			}
			defer f.close(func([]byte) {})
			var got []string
			read := func() (truncated bool) {
				t.Helper()
				_, truncated, err := f.read(make([]byte, 4096), time.Now(), func(line []byte) {
					e, ok, err := f.decoder.Decode(line)
					if err != nil {
						got = append(got, err.Error())
					} else if ok {
						got = append(got, e.Target)
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				return truncated
			}
			read()
			got = nil
			write(c.now)
			if !read() {
				t.Error("not seen as truncated")
			}
			if len(got) != 1 || got[0] != c.want {
				t.Errorf("read %q, want %q", got, c.want)
			}
		})
	}
}
