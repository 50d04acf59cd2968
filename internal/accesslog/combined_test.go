package accesslog

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestCombined(t *testing.T) {
	get := func(target string) Entry {
		return Entry{Time: midnight, Method: "GET", Target: target, Addr: "192.0.2.1", Status: 200, Bytes: 12}
	}
	bytes := func(n int64) Entry { e := get("/"); e.Bytes = n; return e }
	with := func(e Entry, change func(*Entry)) Entry { change(&e); return e }
	// request returns an otherwise plain line with this request field.
	request := func(s string) string {
		return `192.0.2.1 - - [30/Jun/2017:00:00:00 +0000] "` + s + `" 200 12 "-" "curl/8"`
	}
	clock := func(s string) string { return `192.0.2.1 - - [` + s + `] "GET / HTTP/1.1" 200 12` }
	at := func(year int, month time.Month, day, hour, minute, second int) Entry {
		return with(get("/"), func(e *Entry) { e.Time = time.Date(year, month, day, hour, minute, second, 0, time.UTC) })
	}

	for _, c := range []lineCase{
		{name: "combined", line: request("GET /a?x=1 HTTP/1.1"), want: get("/a?x=1")},
		{name: "common", line: `192.0.2.1 - - [30/Jun/2017:00:00:00 +0000] "GET / HTTP/1.1" 200 -`, want: bytes(0)},
		{name: "more at the end", line: request("GET / HTTP/2.0") + ` 0.003 "x" [y] {"z":1}`, want: get("/")},
		{name: "nothing after the status", line: `192.0.2.1 - - [30/Jun/2017:00:00:00 +0000] "GET / HTTP/1.1" 200`, want: bytes(-1)},
		{name: "a space after the status", line: `192.0.2.1 - - [30/Jun/2017:00:00:00 +0000] "GET / HTTP/1.1" 200 `, want: bytes(-1)},
		{name: "bytes alone", line: `192.0.2.1 - - [30/Jun/2017:00:00:00 +0000] "GET / HTTP/1.1" 200  123456789012345678`, want: bytes(123456789012345678)},
		{name: "bytes too many", line: `192.0.2.1 - - [30/Jun/2017:00:00:00 +0000] "GET / HTTP/1.1" 200 1234567890123456789`, want: bytes(-1)},
		{name: "a time in place of the bytes", line: `192.0.2.1 - - [30/Jun/2017:00:00:00 +0000] "GET / HTTP/1.1" 200 0.25`, want: bytes(-1)},
		{name: "a referrer in place of the bytes", line: `192.0.2.1 - - [30/Jun/2017:00:00:00 +0000] "GET / HTTP/1.1" 200 "-" "curl/8"`, want: bytes(-1)},
		{name: "all quoted", line: `"` + request("GET / HTTP/1.1") + `"`, want: get("/")},
		{name: "all quoted, common", line: `"192.0.2.1 - - [30/Jun/2017:00:00:00 +0000] "GET / HTTP/1.1" 200"`, want: bytes(-1)},
		{name: "unknown client", line: strings.Replace(request("GET / HTTP/1.1"), "192.0.2.1", "-", 1), want: with(get("/"), func(e *Entry) { e.Addr = "" })},
		{name: "IPv6", line: strings.Replace(request("GET / HTTP/1.1"), "192.0.2.1", "2001:db8::1", 1), want: with(get("/"), func(e *Entry) { e.Addr = "2001:db8::1" })},
		{name: "user with spaces", line: strings.Replace(request("GET / HTTP/1.1"), "- - ", "- Ann O'Hara ", 1), want: get("/")},
		{name: "user with brackets", line: strings.Replace(request("GET / HTTP/1.1"), "- - ", `- [ann] "[x `, 1), want: get("/")},
		{name: "unknown status", line: strings.Replace(request("GET / HTTP/1.1"), " 200 ", " - ", 1), want: with(get("/"), func(e *Entry) { e.Status = 0 })},
		{name: "status 0", line: strings.Replace(request("GET / HTTP/1.1"), " 200 ", " 0 ", 1), want: with(get("/"), func(e *Entry) { e.Status = 0 })},
		{name: "other method", line: request("M-SEARCH * HTTP/1.1"), want: with(get("*"), func(e *Entry) { e.Method = "M-SEARCH" })},

		{name: "quotes, Apache", line: request(`GET /?q=\"a\\b\" HTTP/1.1`), want: get(`/?q="a\b"`)},
		{name: "quotes, nginx", line: request(`GET /?q=\x22a\x5Cb\x22 HTTP/1.1`), want: get(`/?q="a\b"`)},
		{name: "bytes beyond ASCII", line: request(`GET /?q=\xc3\xA9 HTTP/1.1`), want: get("/?q=é")},
		{name: "escaped once only", line: request(`GET /?q=\\x41\\\\" HTTP/1.1`), reason: errStatus},
		{name: "backslash at the end", line: request(`GET /?q=\\x41\\\\ HTTP/1.1`), want: get(`/?q=\x41\\`)},
		{name: "not an escape", line: request(`GET /?q=\u0041\xg1\x HTTP/1.1`), want: get(`/?q=\u0041\xg1\x`)},
		{name: "percent stays", line: request(`GET /a%20b?q=%zz%22 HTTP/1.1`), want: get("/a%20b?q=%zz%22")},

		{name: "no protocol", line: request("GET /foo"), want: get("/foo")},
		{name: "absolute", line: request("GET http://example.com/path?x=1 HTTP/1.1"), want: get("/path?x=1")},
		{name: "absolute, no path", line: request("GET HTTPS://example.com:443 HTTP/1.1"), want: get("/")},
		{name: "absolute, query alone", line: request("GET http://example.com?x=/1 HTTP/1.1"), want: get("/?x=/1")},
		{name: "URL in a query", line: request("GET /go?to=http://example.com/ HTTP/1.1"), want: get("/go?to=http://example.com/")},
		{name: "asterisk", line: request("OPTIONS * HTTP/1.1"), want: with(get("*"), func(e *Entry) { e.Method = "OPTIONS" })},

		{name: "no request", line: request("-"), reason: errNone},
		{name: "empty request", line: request(""), reason: errRequest},
		{name: "TLS on a plain port", line: request(`\x16\x03\x01\x02`), reason: errRequest},
		{name: "TLS with a space", line: request(`\x16\x03 \x02`), reason: errMethod},
		{name: "lower-case method", line: request("get / HTTP/1.1"), reason: errMethod},
		{name: "long method", line: request(strings.Repeat("A", 33) + " / HTTP/1.1"), reason: errMethod},
		{name: "no method", line: request(" / HTTP/1.1"), reason: errMethod},
		{name: "empty target", line: request("GET  HTTP/1.1"), reason: errNoTarget},
		{name: "no target", line: request("GET HTTP/1.1"), reason: errNoTarget},
		{name: "authority form", line: request("CONNECT example.com:443 HTTP/1.1"), reason: errTarget},
		{name: "no host", line: request("GET http:///a HTTP/1.1"), reason: errTarget},
		{name: "nothing after the scheme", line: request("GET http:// HTTP/1.1"), reason: errTarget},
		{name: "no scheme", line: request("GET ://example.com/ HTTP/1.1"), reason: errTarget},
		{name: "odd scheme", line: request("GET a.b/c://example.com/ HTTP/1.1"), reason: errTarget},
		{name: "relative", line: request("GET index.html HTTP/1.1"), reason: errTarget},
		{name: "space", line: request("GET /a b HTTP/1.1"), reason: errControl},
		{name: "hidden line feed, nginx", line: request(`GET /a\x0Ab HTTP/1.1`), reason: errControl},
		{name: "hidden line feed, Apache", line: request(`GET /a\nb HTTP/1.1`), reason: errControl},
		{name: "tab", line: request("GET /a\tb HTTP/1.1"), reason: errControl},
		{name: "request does not end", line: `192.0.2.1 - - [30/Jun/2017:00:00:00 +0000] "GET / HTTP/1.1`, reason: errQuoted},
		{name: "request ends in a backslash", line: `192.0.2.1 - - [30/Jun/2017:00:00:00 +0000] "GET /\`, reason: errQuoted},
		{name: "request not quoted", line: `192.0.2.1 - - [30/Jun/2017:00:00:00 +0000] GET / 200 1`, reason: errQuoted},
		{name: "cut after the time", line: `192.0.2.1 - - [30/Jun/2017:00:00:00 +0000]`, reason: errQuoted},
		{name: "no status", line: `192.0.2.1 - - [30/Jun/2017:00:00:00 +0000] "GET / HTTP/1.1"`, reason: errStatus},
		{name: "status is a word", line: `192.0.2.1 - - [30/Jun/2017:00:00:00 +0000] "GET / HTTP/1.1" OK 1`, reason: errStatus},
		{name: "status too long", line: `192.0.2.1 - - [30/Jun/2017:00:00:00 +0000] "GET / HTTP/1.1" 2000 1`, reason: errStatus},
		{name: "one word", line: `hello`, reason: errHost},
		{name: "a quote", line: `"`, reason: errHost},
		{name: "no client", line: `" - - [30/Jun/2017:00:00:00 +0000] "GET / HTTP/1.1" 200 1"`, reason: errHost},
		{name: "long client", line: strings.Repeat("a", 256) + clock("30/Jun/2017:00:00:00 +0000"), reason: errAddr},

		{name: "east", line: clock("30/Jun/2017:05:30:00 +0530"), want: get("/")},
		{name: "west", line: clock("29/Jun/2017:20:30:00 -0330"), want: get("/")},
		{name: "leap day", line: clock("29/Feb/2016:23:59:59 +0000"), want: at(2016, 2, 29, 23, 59, 59)},
		{name: "first", line: clock("01/Jan/1970:00:00:00 +0000"), want: at(1970, 1, 1, 0, 0, 0)},
		{name: "last", line: clock("11/Apr/2262:23:47:16 +0000"), want: at(2262, 4, 11, 23, 47, 16)},
		{name: "too early by its zone", line: clock("01/Jan/1970:00:00:00 +0001"), reason: errRange},
		{name: "too late", line: clock("11/Apr/2262:23:47:17 +0000"), reason: errRange},
		{name: "no such day", line: clock("29/Feb/2017:00:00:00 +0000"), reason: errClock},
		{name: "no such month", line: clock("30/Jum/2017:00:00:00 +0000"), reason: errClock},
		{name: "no such hour", line: clock("30/Jun/2017:24:00:00 +0000"), reason: errClock},
		{name: "no such minute", line: clock("30/Jun/2017:00:60:00 +0000"), reason: errClock},
		{name: "no such second", line: clock("30/Jun/2017:00:00:61 +0000"), reason: errClock},
		{name: "day 0", line: clock("00/Jun/2017:00:00:00 +0000"), reason: errClock},
		{name: "no zone", line: clock("30/Jun/2017:00:00:00"), reason: errClock},
		{name: "odd zone", line: clock("30/Jun/2017:00:00:00 +9900"), reason: errClock},
		{name: "sign within", line: clock("30/Jun/2017:00:-1:00 +0000"), reason: errClock},
		{name: "no time", line: `192.0.2.1 - - "GET / HTTP/1.1" 200 1`, reason: errClock},
	} {
		c.run(t, Combined)
	}
}

func FuzzCombined(f *testing.F) {
	f.Add([]byte(`192.0.2.1 - - [30/Jun/2017:00:00:00 +0000] "GET /a?x=1 HTTP/1.1" 200 12 "-" "curl/8"`))
	f.Add([]byte(`"192.0.2.1 - a [b] [30/Jun/2017:00:00:00 -0930] "GET http://h?\x22\"\n HTTP/1.1" - -"`))
	f.Add([]byte(`- - - [31/Dec/2016:23:59:59 +0000] "OPTIONS *" 0`))
	f.Add([]byte(`1 [[30/Jun/2017:00:00:00 +0000]"\"`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if len(line) == 0 { // lines gives none
			return
		}
		var r parsedLine
		if parseCombined(line, &r) == nil {
			checkRequest(t, &r)
		}
	})
}

// checkRequest checks that a good request keeps the promises of Entry.
func checkRequest(t *testing.T, r *parsedLine) {
	t.Helper()
	e := r.entry()
	if e.Target != "*" && !strings.HasPrefix(e.Target, "/") || strings.ContainsAny(e.Target, " \t\r\n\x00\x7f") {
		t.Errorf("target %q", e.Target)
	}
	if e.Method == "" || e.Method != strings.ToUpper(e.Method) {
		t.Errorf("method %q", e.Method)
	}
	if e.Time.Before(time.Unix(0, 0)) || e.Time.After(time.Unix(0, math.MaxInt64)) || e.Time.UnixNano() != r.nanos {
		t.Errorf("time %v", e.Time)
	}
	if e.Bytes < -1 {
		t.Errorf("%d bytes", e.Bytes)
	}
	if e.Status < 0 || e.Status > 999 {
		t.Errorf("status %d", e.Status)
	}
	if len(e.Addr) > maxAddr {
		t.Errorf("address of %d bytes", len(e.Addr))
	}
}
