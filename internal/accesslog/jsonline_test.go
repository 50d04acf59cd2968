package accesslog

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestJSON(t *testing.T) {
	want := Entry{Time: midnight, Method: "GET", Target: "/a?x=1", Addr: "192.0.2.1", Status: 200, Bytes: -1}
	with := func(change func(*Entry)) Entry { e := want; change(&e); return e }
	bytes := func(n int64) Entry { return with(func(e *Entry) { e.Bytes = n }) }
	status := func(n int) Entry { return with(func(e *Entry) { e.Status = n }) }
	unknown := with(func(e *Entry) { e.Addr, e.Status = "", 0 })
	after := func(d time.Duration) Entry { return with(func(e *Entry) { e.Time = midnight.Add(d) }) }
	object := func(clock, rest string) string {
		return `{"time":` + clock + `,"remote_addr":"192.0.2.1","method":"GET","uri":"/a?x=1","status":200` + rest + `}`
	}
	const rfc = `"2017-06-30T00:00:00Z"`

	for _, c := range []lineCase{
		{name: "plain", line: object(rfc, ""), want: want},
		{name: "spaces", line: strings.NewReplacer(`,`, " ,\t", `:"`, ` : "`).Replace(object(rfc, "")), want: want},
		{name: "the required alone", line: `{"uri":"/a?x=1","method":"GET","time":` + rfc + `}`, want: unknown},
		{name: "null is absent", line: object(rfc, `,"status":null,"remote_addr":null`), want: unknown},
		{name: "dashes are absent", line: object(rfc, `,"status":"-","remote_addr":"-"`), want: unknown},
		{name: "status as text", line: object(rfc, `,"status":"404"`), want: status(404)},
		{name: "status 0", line: object(rfc, `,"status":0`), want: status(0)},
		{name: "bytes", line: object(rfc, `,"bytes":123456789012`), want: bytes(123456789012)},
		{name: "bytes as nginx names them", line: object(rfc, `,"body_bytes_sent":"512"`), want: bytes(512)},
		{name: "bytes of both names", line: object(rfc, `,"bytes":1,"body_bytes_sent":"2"`), want: bytes(2)},
		{name: "no bytes", line: object(rfc, `,"bytes":"-"`), want: bytes(0)},
		{name: "null bytes", line: object(rfc, `,"bytes":null`), want: want},
		{name: "bytes of something else", line: object(rfc, `,"bytes":{"in":1,"out":2}`), want: want},
		{name: "negative bytes", line: object(rfc, `,"bytes":-5`), want: want},
		{name: "a fraction of bytes", line: object(rfc, `,"bytes":1.5`), want: want},
		{name: "the last counts", line: object(`17`, `,"time":`+rfc), want: want},
		{name: "unknown fields", line: object(rfc, `,"a":{"uri":"]}","b":["\"",{}]},"URI":"/b","c":[],"d":-1.5e3,"e":true,"f":""`), want: want},
		{name: "escaped name", line: strings.Replace(object(rfc, ""), `"uri"`, `"\u0075ri"`, 1), want: want},
		{name: "escaped value", line: strings.Replace(object(rfc, ""), `/a?x=1`, `\/a?x=1\u0026y=\"`, 1), want: with(func(e *Entry) { e.Target = `/a?x=1&y="` })},
		{name: "not UTF-8", line: strings.Replace(object(rfc, ""), `x=1`, "x=\xff", 1), want: with(func(e *Entry) { e.Target = "/a?x=\xff" })},
		{name: "absolute", line: strings.Replace(object(rfc, ""), `/a?`, "http://example.com/a?", 1), want: want},

		{name: "fraction", line: object(`"2017-06-30T00:00:00.25Z"`, ""), want: after(250 * time.Millisecond)},
		{name: "nanoseconds", line: object(`"2017-06-30T00:00:00.000000001Z"`, ""), want: after(1)},
		{name: "finer is cut off", line: object(`"2017-06-30T00:00:00.0000000019999Z"`, ""), want: after(1)},
		{name: "zone", line: object(`"2017-06-30T05:30:00+05:30"`, ""), want: want},
		{name: "zone without colon", line: object(`"2017-06-29T20:30:00.0-0330"`, ""), want: want},
		{name: "lower case", line: object(`"2017-06-30t00:00:00z"`, ""), want: want},
		{name: "space in the time", line: object(`"2017-06-30 00:00:00Z"`, ""), want: want},
		{name: "seconds", line: object(`1498780800`, ""), want: want},
		{name: "seconds with fraction", line: object(`1498780800.123456789`, ""), want: after(123456789)},
		{name: "seconds as text", line: object(`"1498780800.250"`, ""), want: after(250 * time.Millisecond)},
		{name: "exponent", line: object(`1.4987808e9`, ""), want: want},
		{name: "milliseconds", line: object(`1498780800001`, ""), want: after(time.Millisecond)},
		{name: "milliseconds with fraction", line: object(`1498780800001.5`, ""), want: after(1500 * time.Microsecond)},
		{name: "microseconds", line: object(`1498780800000001`, ""), want: after(time.Microsecond)},
		{name: "nanoseconds as a number", line: object(`1498780800000000001`, ""), want: after(1)},
		{name: "the epoch", line: object(`0`, ""), want: with(func(e *Entry) { e.Time = time.Unix(0, 0).UTC() })},
		{name: "the last", line: object(`9223372036.854775807`, ""), want: with(func(e *Entry) { e.Time = time.Unix(0, math.MaxInt64).UTC() })},
		{name: "the last as text", line: object(`"2262-04-11T23:47:16.854775807Z"`, ""), want: with(func(e *Entry) { e.Time = time.Unix(0, math.MaxInt64).UTC() })},

		{name: "too late", line: object(`9223372036.854775808`, ""), reason: errRange},
		{name: "too late as text", line: object(`"2262-04-11T23:47:16.854775808Z"`, ""), reason: errRange},
		{name: "too large", line: object(`9223372036854775808`, ""), reason: errRange},
		{name: "far too large", line: object(`1e300`, ""), reason: errRange},
		{name: "infinite", line: object(`1e400`, ""), reason: errTime},
		{name: "negative", line: object(`-1`, ""), reason: errRange},
		{name: "too early", line: object(`"1969-12-31T23:59:59.9Z"`, ""), reason: errRange},
		{name: "no zone", line: object(`"2017-06-30T00:00:00.25"`, ""), reason: errTime},
		{name: "no digits after the dot", line: object(`"2017-06-30T00:00:00.Z"`, ""), reason: errTime},
		{name: "no such day", line: object(`"2017-06-31T00:00:00Z"`, ""), reason: errTime},
		{name: "text after the time", line: object(`"2017-06-30T00:00:00Z "`, ""), reason: errTime},
		{name: "no time in the text", line: object(`""`, ""), reason: errTime},
		{name: "dots alone", line: object(`"."`, ""), reason: errTime},
		{name: "dot at the end", line: object(`"1."`, ""), reason: errTime},
		{name: "two dots", line: object(`"1.2.3"`, ""), reason: errTime},
		{name: "a dash", line: object(`"-"`, ""), reason: errTime},
		{name: "hexadecimal", line: object(`"0x1e5"`, ""), reason: errTime},
		{name: "time is an object", line: object(`{}`, ""), reason: errTime},
		{name: "time is true", line: object(`true`, ""), reason: errTime},

		{name: "no time", line: `{"method":"GET","uri":"/"}`, reason: errFields},
		{name: "no method", line: `{"time":1,"uri":"/"}`, reason: errFields},
		{name: "no uri", line: `{"time":1,"method":"GET"}`, reason: errFields},
		{name: "null uri", line: `{"time":1,"method":"GET","uri":null}`, reason: errFields},
		{name: "empty", line: `{}`, reason: errFields},
		{name: "empty method", line: `{"time":1,"method":"","uri":"/"}`, reason: errMethod},
		{name: "empty uri", line: `{"time":1,"method":"GET","uri":""}`, reason: errNoTarget},
		{name: "method is a number", line: `{"time":1,"method":1,"uri":"/"}`, reason: errString},
		{name: "uri is an array", line: `{"time":1,"method":"GET","uri":["/"]}`, reason: errString},
		{name: "address is a number", line: object(rfc, `,"remote_addr":1`), reason: errString},
		{name: "lower-case method", line: `{"time":1,"method":"get","uri":"/"}`, reason: errMethod},
		{name: "space in the uri", line: `{"time":1,"method":"GET","uri":"/a\u0020b"}`, reason: errControl},
		{name: "relative uri", line: `{"time":1,"method":"GET","uri":"a"}`, reason: errTarget},
		{name: "status is true", line: object(rfc, `,"status":true`), reason: errStatus},
		{name: "status is a fraction", line: object(rfc, `,"status":2.5`), reason: errStatus},
		{name: "long address", line: object(rfc, `,"remote_addr":"`+strings.Repeat("a", 256)+`"`), reason: errAddr},
		{name: "cut off", line: object(rfc, "")[:80], reason: errJSON},
		{name: "two objects", line: object(rfc, "") + "{}", reason: errJSON},
		{name: "array", line: `[{"time":1}]`, reason: errJSON},
		{name: "nginx without escape=json", line: `{"time":1,"method":"GET","uri":"/?q=\x22"}`, reason: errJSON},
	} {
		c.run(t, JSON)
	}
}

// A number is read correctly in every unit in which it may be written.
func TestNumberOfEachUnit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Before this time, a finer unit looks like a coarser one.
		from := time.Date(1970, 4, 18, 0, 0, 0, 0, time.UTC).UnixNano()
		nanos := rapid.Int64Range(from, math.MaxInt64).Draw(t, "nanos")
		for unit := int64(1e9); unit >= 1; unit /= 1000 {
			text := strconv.FormatInt(nanos/unit, 10)
			if unit > 1 {
				fraction := strconv.FormatInt(unit+nanos%unit, 10)[1:] // with its leading zeros
				text += "." + fraction
			}
			got, err := parseNumber([]byte(text))
			if err != nil || got != nanos {
				t.Fatalf("%s: %d, %v; want %d", text, got, err, nanos)
			}
		}
	})
}

// Times are read as the standard library reads them.
func TestTimesAgreeWithTheStandardLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nanos := rapid.Int64Range(0, math.MaxInt64).Draw(t, "nanos")
		east := rapid.IntRange(-23*60-59, 23*60+59).Draw(t, "minutes east")
		at := time.Unix(0, nanos).In(time.FixedZone("", east*60))
		if got, err := parseRFC3339([]byte(at.Format(time.RFC3339Nano))); err != nil || got != nanos {
			t.Fatalf("%s: %d, %v; want %d", at.Format(time.RFC3339Nano), got, err, nanos)
		}
		clock := at.Format("02/Jan/2006:15:04:05 -0700")
		if got, err := parseClock([]byte(clock)); err != nil || got != at.Truncate(time.Second).UnixNano() {
			t.Fatalf("%s: %d, %v; want %d", clock, got, err, at.Unix())
		}
	})
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"time":"2017-06-30T00:00:00.25Z","remote_addr":"192.0.2.1","method":"GET","uri":"/a?x=1","status":200}`))
	f.Add([]byte(`{"time":1498780800.5,"method":"GET","uri":"http:\/\/h","status":"-","x":[{"a":"]\""}],"uri":"\u002f"}`))
	f.Add([]byte(`{ "time" : "1e9" , "m\u0065thod" : "PUT" , "uri" : "*" , "remote_addr" : null }`))
	f.Add([]byte(`{"time":{},"method":"\"`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if len(line) == 0 { // lines gives none
			return
		}
		var r parsedLine
		d := decoder{format: JSON}
		if d.decode(line, &r) != nil {
			return
		}
		checkRequest(t, &r)

		var want map[string]any
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatalf("%s: accepted, but %v", line, err)
		}
		if string(r.method) != want["method"] {
			t.Errorf("%s: method %s, want %v", line, r.method, want["method"])
		}
		addr, _ := want["remote_addr"].(string)
		if utf8.Valid(line) && string(r.addr) != addr && addr != "-" {
			t.Errorf("%s: address %s, want %s", line, r.addr, addr)
		}
		uri, _ := want["uri"].(string)
		if utf8.Valid(line) && strings.HasPrefix(uri, "/") && string(r.target) != uri {
			t.Errorf("%s: target %s, want %s", line, r.target, uri)
		}
	})
}
