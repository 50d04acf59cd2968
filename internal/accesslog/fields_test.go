package accesslog

import (
	"strings"
	"testing"
	"time"
)

func TestFields(t *testing.T) {
	want := Entry{Time: midnight, Method: "GET", Target: "/a?x=1", Addr: "192.0.2.1", Status: 200, Bytes: 5, Took: 1500 * time.Microsecond}
	with := func(change func(*Entry)) Entry { e := want; change(&e); return e }
	for _, c := range []struct {
		name, list, clock string
		format            Format
		lines             string // but the last one all are read before
		want              Entry
		wrong             string
	}{
		{name: "nested", list: "time=ts,method=request.method,uri=request.uri,caller=request.remote_ip,status=status,bytes=size,duration_ms=took",
			lines: `{"ts":1498780800,"request":{"method":"GET","uri":"/a?x=1","remote_ip":"192.0.2.1:80"},"size":5,"status":200,"took":"1.5"}`, want: want},
		{name: "escaped names", list: `time=a\.b,method=:METHOD,uri=c\,d,caller=x,status=s,bytes=b,duration=t`, clock: "ms",
			lines: `{"a.b":"1498780800000",":METHOD":"GET","c,d":"\/a?x\u003d1","x":"192.0.2.1","s":"200","b":"5","t":0.0015}`, want: want},
		{name: "the second place", list: "time=t,method=m,uri=original,uri=path,caller=c,status=s,bytes=b,duration_us=d", clock: "us",
			lines: `{"t":1498780800000000,"m":"GET","path":"/a?x=1","original":"-","c":"192.0.2.1, 10.0.0.1","s":200,"b":5,"d":1500}`, want: want},
		{name: "request line", list: "time=t,request=r,caller=c,status=s,bytes=b,duration=d", clock: "2006-01-02 15:04:05",
			lines: `{"t":"2017-06-30 00:00:00","r":"GET /a?x=1 HTTP/1.1","c":"192.0.2.1","s":200,"b":5,"d":"1.5ms"}`, want: want},
		{name: "path and query", list: "time=t,method=m,path=p,query=q,caller=c,status=s,bytes=b,duration_ns=d", clock: "clf",
			lines: `{"t":"[30/Jun/2017:00:00:00 +0000]","m":"GET","p":"/a","q":"?x=1","c":"[192.0.2.1]:80","s":200,"b":5,"d":1500000}`, want: want},
		{name: "a path that was unescaped", list: "time=t,method=m,path=p,query=q",
			lines: `{"t":1498780800,"m":"GET","p":"/a b\u0001","q":"-"}`, want: Entry{Time: midnight, Method: "GET", Target: "/a%20b%01", Bytes: -1}},
		{name: "csv", format: CSV, list: "time=1,method=2,uri=3,caller=5,status=4,bytes=6,duration_ms=7",
			lines: `2017-06-30T00:00:00Z,"GET","/a?x=1",200,"192.0.2.1",5,1.5`, want: want},
		{name: "csv with a heading", format: CSV, list: "time=when,method=verb,uri=url,caller=ip,status=code,bytes=size,duration_ms=ms",
			lines: "ip,when,verb,url,code,size,ms\n192.0.2.1,2017-06-30T00:00:00Z,GET,/a?x=1,200,5,1.5", want: want},
		{name: "csv with quotes", format: CSV, list: "time=1,method=2,uri=3",
			lines: `1498780800,GET,"/a?x=""1"",2"`, want: Entry{Time: midnight, Method: "GET", Target: `/a?x="1",2`, Bytes: -1}},
		{name: "tsv of CloudFront", format: TSV, list: "date=date,time=time,method=cs-method,path=cs-uri-stem,query=cs-uri-query,caller=c-ip,status=sc-status,bytes=sc-bytes,duration=time-taken",
			lines: "#Version: 1.0\n#Fields: date time c-ip cs-method cs-uri-stem sc-status cs-uri-query sc-bytes time-taken\n2017-06-30\t00:00:00\t192.0.2.1\tGET\t/a\t200\tx=1\t5\t0.0015", want: want},
		{name: "space of a load balancer", format: Space, list: "time=2,caller=4,status=9,bytes=12,request=13,duration=7",
			lines: `https 2017-06-30T00:00:00.000000Z app/a/b 192.0.2.1:2817 10.0.0.1:80 0.000 0.0015 0.000 200 200 34 5 "GET https://h:443/a?x=1 HTTP/1.1" "curl/8" - -`, want: want},
		{name: "space with escapes", format: Space, list: "time=1,request=2",
			lines: `[30/Jun/2017:00:00:00 +0000] "GET /a?\x22x\" HTTP/1.1"`, want: Entry{Time: midnight, Method: "GET", Target: `/a?"x"`, Bytes: -1}},
		{name: "another zone", list: "time=t,method=m,uri=u", clock: "02.01.2006 15:04:05 -0700",
			lines: `{"t":"30.06.2017 02:00:00 +0200","m":"GET","u":"/a?x=1"}`, want: with(func(e *Entry) { e.Addr, e.Status, e.Bytes, e.Took = "", 0, -1, 0 })},

		{name: "too few columns", format: CSV, list: "time=1,method=2,uri=3", lines: "1498780800,GET", wrong: errColumns.Error()},
		{name: "no end", format: CSV, list: "time=1,method=2,uri=3", lines: `1498780800,GET,"/`, wrong: errQuotes.Error()},
		{name: "no such column", format: TSV, list: "time=t,method=m,uri=u", lines: "t\tm\turl", wrong: "no column is called u; it has t, m, url"},
		{name: "another layout", list: "time=t,method=m,uri=u", clock: "2006-01-02 15:04:05", lines: `{"t":1,"m":"GET","u":"/"}`, wrong: errLayout.Error()},
		{name: "not a number", list: "time=t,method=m,uri=u", clock: "ms", lines: `{"t":"2017","m":"GET","u":"/"}` + "\n" + `{"t":"x","m":"GET","u":"/"}`, wrong: errNumber.Error()},
		{name: "uri is an array", list: "time=t,method=m,uri=u", lines: `{"t":1,"m":"GET","u":["/"]}`, wrong: errString.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := ParseFields(c.list, c.clock)
			if err != nil {
				t.Fatal(err)
			}
			d, r := decoder{format: c.format, fields: f}, parsedLine{}
			if c.format == "" {
				d.format = JSON
			}
			for line := range strings.SplitSeq(c.lines, "\n") {
				err = d.decode([]byte(line), &r)
			}
			if c.wrong != "" {
				if err == nil || err.Error() != c.wrong {
					t.Errorf("error %v, want %s", err, c.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := r.entry(); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestParseFieldsRefuses(t *testing.T) {
	for _, c := range []struct{ list, clock, want string }{
		{"", "", "write it as NAME=PLACE"},
		{"time", "", "write it as NAME=PLACE"},
		{"time=", "", "write it as NAME=PLACE"},
		{"when=t,method=m,uri=u", "", `field "when" is unknown`},
		{"header:=t,method=m,uri=u", "", `field "header:" is unknown`},
		{"method=m,uri=u", "", "no field has the time"},
		{"time=t,uri=u", "", "no field has the request"},
		{"time=t,method=m,query=u", "", "no field has the request"},
		{"time=t,method=m,uri=u", "iso", `time format "iso" is unknown`},
	} {
		if _, err := ParseFields(c.list, c.clock); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s", c.list, err, c.want)
		}
	}
	for _, c := range []struct {
		list, want string
		format     Format
	}{
		{"time=t.*,method=m,uri=u", "a star is not needed", JSON},
		{"time=t,method=t,uri=u", "given twice", JSON},
		{"time=t..x,method=m,uri=u", "empty", JSON},
		{"time=0,method=m,uri=u", "column 0", CSV},
		{"time=1,method=1000,uri=u", "column 1000", CSV},
	} {
		f, err := ParseFields(c.list, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Open([]string{"-"}, Options{Format: c.format, Fields: f}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s", c.list, err, c.want)
		}
	}
}

// No line makes a decoder panic, and each accepted line is a valid request.
func FuzzFormats(f *testing.F) {
	formats := []Format{Auto, Caddy, Traefik, Envoy, Nginx, JSON, CSV, TSV, Space}
	for i, line := range []string{
		`{"ts":1,"request":{"method":"GET","uri":"/","headers":{"X-Tenant":["a"],"Cookie":["id=1; x"]}},"duration":1.5}`,
		`{"StartUTC":"2026-11-23T10:46:01.5Z","RequestMethod":"GET","RequestPath":"/?a\u0026b","request_X-Tenant":"t"}`,
		`{"start_time":"2026-11-23T10:46:01.272Z","method":"GET","path":"/","response_code":200}`,
		`{"time_local":"23/Nov/2026:10:46:01 +0000","request":"GET / HTTP/1.1","http_x_tenant":"-"}`,
		`[2026-11-23T10:46:01.272Z] "GET / HTTP/1.1" 200 - 0 5 0 - "-"`,
		`1,GET,"/""a","t"`, "1\tGET\t/\\x41\tt", `1 GET "/" [t]`, "#Fields: time method uri",
	} {
		f.Add(i, []byte(line))
	}
	columns, err := ParseFields("time=1,method=2,uri=3,header:x-tenant=4", "")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, i int, line []byte) {
		if line = []byte(strings.TrimSpace(string(line))); len(line) == 0 {
			return
		}
		d := decoder{format: formats[uint(i)%uint(len(formats))], wanted: []string{"header:x-tenant", "cookie:id"}}
		if d.format.description().isDelimited() {
			d.fields = columns
		}
		var r parsedLine
		for range 2 { // the second time with room that was used
			if d.decode(line, &r) != nil {
				return
			}
			checkRequest(t, &r)
			e := r.entry()
			var s sorted
			s.add(&r)
			for back := range s.entries() {
				if back != e {
					t.Errorf("%+v, want %+v", back, e)
				}
			}
		}
	})
}
