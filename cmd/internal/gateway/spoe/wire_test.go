package spoe

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The bytes are those of HAProxy's own encoder.
func TestVarint(t *testing.T) {
	for _, c := range []struct {
		n    uint64
		want string
	}{
		{0, "00"}, {239, "ef"}, {240, "f000"}, {241, "f100"}, {255, "ff00"}, {256, "f001"},
		{2287, "ff7f"}, {2288, "f08000"}, {264431, "ffff7f"}, {264432, "f0808000"},
	} {
		got := appendVarint(nil, c.n)
		if hex.EncodeToString(got) != c.want {
			t.Errorf("%d: %x, want %s", c.n, got, c.want)
		}
		r := payloadReader{unread: got}
		if n := r.varint(); n != c.n || r.bad || len(r.unread) > 0 {
			t.Errorf("%s: read as %d, bad %v", c.want, n, r.bad)
		}
	}
	for _, n := range []uint64{math.MaxUint32, math.MaxInt64, math.MaxUint64 - 1, math.MaxUint64} {
		r := payloadReader{unread: appendVarint(nil, n)}
		if got := r.varint(); got != n || r.bad {
			t.Errorf("%d came back as %d", n, got)
		}
	}
	for _, bad := range []string{"", "f0", "f080", "ffffffffffffffffffff7f", "ffffffffffffffffff7f"} {
		b, _ := hex.DecodeString(bad)
		r := payloadReader{unread: b}
		if n := r.varint(); n != 0 || !r.bad {
			t.Errorf("%q was read as %d", bad, n)
		}
	}
}

func TestValues(t *testing.T) {
	for _, c := range []struct {
		wire, text string
		n          int64
		isNumber   bool
	}{
		{"00", "", 0, false},
		{"01", "false", 0, true},
		{"11", "true", 1, true},
		{"022a", "42", 42, true},
		{"04f001", "256", 256, true},
		{"06c0000201", "192.0.2.1", 0, false},
		{"0720010db8000000000000000000000001", "2001:db8::1", 0, false},
		{"0700000000000000000000ffffc0000201", "192.0.2.1", 0, false},
		{"080568656c6c6f", "hello", 0, false},
		{"08023137", "17", 17, true},
		{"0903000102", "\x00\x01\x02", 0, false},
	} {
		b, err := hex.DecodeString(c.wire)
		if err != nil {
			t.Fatal(err)
		}
		r := payloadReader{unread: b}
		v := r.value()
		n, isNumber := v.int()
		if v.text() != c.text || n != c.n || isNumber != c.isNumber || r.bad || len(r.unread) > 0 {
			t.Errorf("%s: %q, %d %v, bad %v", c.wire, v.text(), n, isNumber, r.bad)
		}
		if len(b) < 2 {
			continue
		}
		if r = (payloadReader{unread: b[:len(b)-1]}); !reflect.DeepEqual(r.value(), value{}) || !r.bad {
			t.Errorf("%s without its last byte was read", c.wire)
		}
	}
	r := payloadReader{unread: appendInt64(nil, -17)}
	if v := r.value(); v.text() != "-17" {
		t.Errorf("-17 came back as %s", v.text())
	}
	for _, bad := range []string{"0a", "0f00", "08ff7f61"} {
		b, _ := hex.DecodeString(bad)
		if r := (payloadReader{unread: b}); !reflect.DeepEqual(r.value(), value{}) || !r.bad {
			t.Errorf("%s was read", bad)
		}
	}
}

// goldenHello is the frame that HAProxy 2.6.12 sent when it connected, without the length.
var goldenHello = "01" + "00000001" + "00" + "00" +
	"12" + hex.EncodeToString([]byte("supported-versions")) + "0803" + hex.EncodeToString([]byte("2.0")) +
	"0e" + hex.EncodeToString([]byte("max-frame-size")) + "03" + "fcf006" +
	"0c" + hex.EncodeToString([]byte("capabilities")) + "0810" + hex.EncodeToString([]byte("pipelining,async"))

func TestHello(t *testing.T) {
	b, err := hex.DecodeString(goldenHello)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parseFrame(b)
	if err != nil || f.kind != typeHAProxyHello {
		t.Fatal(f.kind, err)
	}
	h, err := parseHello(f.payload)
	if err != nil || h.frameSize != 16380 || !h.has("pipelining") || !h.has("async") || h.has("fragmentation") || h.healthcheck {
		t.Fatalf("%+v, %v", h, err)
	}
	pairs := func(skip, change string, v []byte) (payload []byte) {
		for _, p := range []struct {
			name  string
			value []byte
		}{
			{"supported-versions", appendString(nil, "2.1, 1.5")}, {"max-frame-size", appendUint32(nil, 16380)},
			{"capabilities", appendString(nil, "")}, {"healthcheck", appendBool(nil, true)}, {"unknown", appendInt64(nil, 5)},
		} {
			switch p.name {
			case skip:
				continue
			case change:
				p.value = v
			}
			payload = append(appendText(payload, p.name), p.value...)
		}
		return payload
	}
	if h, err := parseHello(pairs("", "", nil)); err != nil || !h.healthcheck {
		t.Errorf("%+v, %v", h, err)
	}
	for _, c := range []struct {
		payload []byte
		want    status
	}{
		{pairs("supported-versions", "", nil), statusNoVersion},
		{pairs("max-frame-size", "", nil), statusNoFrameSize},
		{pairs("capabilities", "", nil), statusNoCapability},
		{pairs("", "supported-versions", appendString(nil, "1.0, 3.0, 20.1, 2")), statusBadVersion},
		{pairs("", "max-frame-size", appendUint32(nil, 255)), statusBadFrameSize},
		{pairs("", "max-frame-size", appendString(nil, "16380")), statusNoFrameSize},
		{pairs("", "", nil)[:30], statusInvalid},
	} {
		_, err := parseHello(c.payload)
		if got := statusOf(err); got != c.want {
			t.Errorf("%q: %v, want %v", c.payload, got, c.want)
		}
	}
}

func statusOf(err error) status {
	var wrong *protocolError
	if errors.As(err, &wrong) {
		return wrong.status
	}
	return statusNormal
}

func TestFrames(t *testing.T) {
	in := bytes.NewReader([]byte{0, 0, 1, 1, 3})
	if _, err := readFrame(in, nil, 256); statusOf(err) != statusTooBig {
		t.Errorf("257 bytes: %v", err)
	}
	for name, c := range map[string]struct {
		frame []byte
		want  status
	}{
		"empty":            {nil, statusInvalid},
		"cut":              {[]byte{3, 0, 0, 0, 1, 1}, statusInvalid},
		"a fragment":       {[]byte{3, 0, 0, 0, 0, 1, 1}, statusFragmentation},
		"the next of them": {[]byte{0, 0, 0, 0, 1, 1, 1}, statusFragmentation},
		"a notify":         {[]byte{3, 0, 0, 0, 1, 1, 1}, statusNormal},
	} {
		if _, err := parseFrame(c.frame); statusOf(err) != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestCheckMessage(t *testing.T) {
	headers := appendText(nil, "x-tenant")
	headers = appendText(headers, "acme")
	headers = appendText(appendText(headers, "host"), "shop.example")
	headers = append(headers, 0, 0)
	payload := message("check",
		"method", appendString(nil, "GET"), "uri", appendString(nil, "/search?q=phone"), "src", []byte{byte(kindIPv4), 192, 0, 2, 1},
		"headers", appendText([]byte{byte(kindBinary)}, string(headers)), "header.X-Plan", appendString(nil, "free"),
		"ctx.tenant", appendString(nil, "7"), "timeout", appendInt64(nil, 25), "hold", appendBool(nil, true),
		"caller", []byte{byte(kindNull)}, "else", appendString(nil, "ignored"))
	var c check
	calls := 0
	_, err := eachMessage(payload, nil, func(name []byte, args []arg) {
		calls++
		if string(name) != "check" || !c.parse(args) {
			t.Errorf("message %q is not complete", name)
		}
	})
	want := check{
		method: "GET", uri: "/search?q=phone", addr: "192.0.2.1", timeout: 25 * time.Millisecond, hold: true,
		header:  http.Header{"X-Tenant": {"acme"}, "Host": {"shop.example"}, "X-Plan": {"free"}},
		context: map[string]string{"tenant": "7"},
	}
	if err != nil || calls != 1 || !reflect.DeepEqual(c, want) {
		t.Errorf("%d calls, %v\n got %+v\nwant %+v", calls, err, c, want)
	}
	text := value{kind: kindString, bytes: []byte("Host: a\r\nX-Empty:\r\nno header\r\nX-Tenant:  b c \r\n\r\n")}
	h := make(http.Header)
	if !addHeaders(h, &text) || !reflect.DeepEqual(h, http.Header{"Host": {"a"}, "X-Empty": {""}, "X-Tenant": {"b c"}}) {
		t.Errorf("%v", h)
	}
	for name, bad := range map[string][]byte{
		"cut in a name":  payload[:3],
		"cut in a value": payload[:len(payload)-3],
		"too many":       bytes.Repeat(message("x"), maxMessages+1),
	} {
		if _, err := eachMessage(bad, nil, func([]byte, []arg) {}); statusOf(err) != statusInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// message returns a message with arguments: a name, and its value on the wire.
func message(name string, args ...any) []byte {
	b := append(appendText(nil, name), byte(len(args)/2))
	for i := 0; i < len(args); i += 2 {
		b = append(appendText(b, args[i].(string)), args[i+1].([]byte)...)
	}
	return b
}

func TestTicketText(t *testing.T) {
	began := time.UnixMilli(1_800_000_000_123)
	id, took, ok := splitTicket(joinTicket("a.b", began), began.Add(250*time.Millisecond))
	if id != "a.b" || took != 250*time.Millisecond || !ok {
		t.Error(id, took, ok)
	}
	if _, took, ok := splitTicket(joinTicket("a", began), began.Add(-time.Hour)); took != 0 || !ok {
		t.Error("a clock that went back:", took, ok)
	}
	for _, bad := range []string{"", "a", ".1", "a.", "a.?", "a." + strings.Repeat("z", 20)} {
		if _, _, ok := splitTicket(bad, began); ok {
			t.Errorf("%q is a ticket", bad)
		}
	}
}

func TestVariableOf(t *testing.T) {
	for header, want := range map[string]string{"RateLimit-Policy": "ratelimit_policy", "X-Cost.é": "x_cost__", "Body": "", "Status": ""} {
		if got := variableOf(header); got != want {
			t.Errorf("%s: %q, want %q", header, got, want)
		}
	}
}

// For any bytes, the parser reads nothing beyond them, and returns only parts of them.
func FuzzFrame(f *testing.F) {
	hello, _ := hex.DecodeString(goldenHello)
	f.Add(hello)
	f.Add(append(appendHead(nil, typeNotify, 300, 1)[lengthSize:], message("check", "method", appendString(nil, "GET"), "uri", appendString(nil, "/a?b=c"))...))
	f.Add(append(appendHead(nil, typeNotify, 7, 1)[lengthSize:], message("done", "ticket", appendString(nil, "a.1"), "bytes", appendInt64(nil, -5))...))
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, err := parseFrame(b)
		if err != nil {
			return
		}
		_, _ = parseHello(frame.payload)
		total := 0
		_, err = eachMessage(frame.payload, nil, func(name []byte, args []arg) {
			total += len(name)
			for _, a := range args {
				total += len(a.name) + len(a.value.bytes)
			}
			var c check
			if c.parse(args) && (c.method == "" || c.uri == "" || c.timeout < 0 || c.timeout > maxTimeout) {
				t.Errorf("%+v", c)
			}
			var d done
			if d.parse(args) && (d.ticket == "" || d.bytes < 0 || d.units < 0 || d.ms < 0) {
				t.Errorf("%+v", d)
			}
		})
		if total > len(frame.payload) {
			t.Errorf("%d bytes were read of %d, %v", total, len(frame.payload), err)
		}
	})
}

func FuzzVarint(f *testing.F) {
	f.Add([]byte{0xf0, 0x80, 0x80, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := payloadReader{unread: b}
		n := r.varint()
		if r.bad {
			return
		}
		read := b[:len(b)-len(r.unread)]
		if again := appendVarint(nil, n); len(again) > len(read) {
			t.Errorf("%x is %d, which is written as %x", read, n, again)
		}
	})
}
