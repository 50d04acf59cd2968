package accesslog

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Logs of real servers; testdata/README.md says where they come from.
func TestLogsOfServers(t *testing.T) {
	recorded := []string{
		"GET /search?q=phone&page=2", "GET /search?q=ph%20one%26more&lang=de", "POST /orders/17/items",
		"GET /search?q=a+b&<x>=y", "GET /missing", "HEAD /static/app%20one.css",
	}
	fields := func(list, clock string) *Fields {
		f, err := ParseFields(list, clock)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	tsv := fields("time=1,method=2,uri=3,caller=4,status=5,bytes=6,duration=7", "s")
	for _, c := range []struct {
		file, format string // the format is also given
		fields       *Fields
		bad          int64
		without      string // this request is bad
		after        string // the requests
		took         bool   // durations are known
		tenant       string // of the second request
	}{
		{file: "caddy/access.log", format: "caddy", after: "GET /search?q=last", took: true, tenant: "acme"},
		{file: "caddy/rfc3339.log", format: "caddy", tenant: "acme"},
		{file: "caddy/wall.log", format: "caddy", took: true, tenant: "acme"},
		{file: "nginx/uri.log", format: "nginx", tenant: "acme"},
		{file: "nginx/request.log", format: "nginx"},
		{file: "nginx/ingress.log", format: "nginx"},
		{file: "nginx/msec.log", format: "nginx"},
		{file: "nginx/plain.log", format: "nginx", bad: 1, without: "POST /orders/17/items"},
		{file: "nginx/combined.log", format: "combined"},
		{file: "nginx/fields.tsv", format: "tsv", fields: tsv},
		{file: "envoy/istio.log", format: "envoy"},
		{file: "envoy/gateway.log", format: "envoy"},
		{file: "envoy/upper.log", format: "envoy"},
		{file: "envoy/text.log", format: "envoy"},
		{file: "traefik/access.log", format: "traefik", took: true, tenant: "acme"},
	} {
		for _, format := range []Format{Auto, Format(c.format)} {
			if format == Auto && c.fields != nil {
				continue
			}
			t.Run(c.file+" as "+string(format), func(t *testing.T) {
				options := Options{Format: format, Fields: c.fields, Values: []string{"header:x-tenant", "header:missing"}}
				got, stats, err := drain(t, []string{filepath.Join("testdata", c.file)}, options)
				if err != nil || stats.Bad != c.bad {
					t.Fatalf("%v, %+v", err, stats)
				}
				want := slices.Clone(recorded)
				if c.without != "" {
					want = slices.DeleteFunc(want, func(s string) bool { return s == c.without })
				}
				if c.after != "" {
					want = append(want, c.after)
				}
				var requests []string
				took := time.Duration(0)
				for _, e := range got {
					want := 200
					switch {
					case c.file == "nginx/plain.log": // which has none
						want = 0
					case e.Target == "/missing" && c.file != "caddy/rfc3339.log" && c.file != "caddy/wall.log":
						want = 404
					}
					if e.Status != want {
						t.Errorf("%s: status %d, want %d", e.Target, e.Status, want)
					}
					requests = append(requests, e.Method+" "+e.Target)
					took += e.Took
					if day := e.Time.Format(time.DateTime)[:16]; day != "2026-11-23 10:46" {
						t.Errorf("%+v", e)
					}
					if strings.Contains(e.Addr, ",") || strings.HasPrefix(e.Addr, "[") || strings.Count(e.Addr, ":") == 1 {
						t.Errorf("address %q", e.Addr)
					}
				}
				if !slices.Equal(requests, want) {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(requests, "\n"), strings.Join(want, "\n"))
				}
				if c.took != (took > 0) || took > time.Second {
					t.Errorf("%s in all", took)
				}
				tenant, ok := got[1].Value(0)
				if tenant != c.tenant || ok != (c.tenant != "") {
					t.Errorf("tenant %q, %v", tenant, ok)
				}
				if value, ok := got[0].Value(1); ok {
					t.Errorf("a header that is not there is %q", value)
				}
			})
		}
	}
	t.Run("lines that are no requests", func(t *testing.T) {
		names := []string{filepath.Join("testdata", "caddy", "default.log"), filepath.Join("testdata", "caddy", "access.log")}
		_, _, err := drain(t, names[:1], Options{})
		if err == nil || !strings.Contains(err.Error(), "--fields, which names") {
			t.Errorf("%v", err)
		}
	})
}

func TestCookies(t *testing.T) {
	options := Options{Values: []string{"cookie:theme", "cookie:session", "cookie:none"}}
	for file, want := range map[string]string{"traefik/access.log": "dark s3cret", "nginx/uri.log": " s3cret", "caddy/access.log": " "} {
		got, _, err := drain(t, []string{filepath.Join("testdata", file)}, options)
		if err != nil {
			t.Fatal(err)
		}
		theme, _ := got[1].Value(0)
		session, _ := got[1].Value(1)
		if _, ok := got[1].Value(2); ok || theme+" "+session != want {
			t.Errorf("%s: %s %s, want %s", file, theme, session, want)
		}
	}
}
