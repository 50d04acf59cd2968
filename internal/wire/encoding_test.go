package wire_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/wire"
)

var encodings = []wire.Encoding{wire.Plain, wire.Strict}

func TestEncodingGolden(t *testing.T) {
	for _, test := range []struct{ text, plain, strict string }{
		{"b=2&q=1", "b=2&q=1", "b=2_26q=1"},
		{"GET /search?q=phone", "GET%20/search?q=phone", "GET_20_2Fsearch_3Fq=phone"},
		{".:|@#,;%[]", "%2E%3A%7C%40%23%2C%3B%25%5B%5D", "_2E_3A_7C_40_23_2C_3B_25_5B_5D"},
		{"a_b~c-d", "a_b~c-d", "a_5Fb_7Ec-d"},
		{"\x00\n\x7f\xc3\xa9\xff", "%00%0A%7F%C3%A9%FF", "_00_0A_7F_C3_A9_FF"},
		{"q=%C3%A9", "q=%25C3%25A9", "q=_25C3_25A9"},
		{"!\"$&'()*+/<=>?[\\]^`{}", "!\"$&'()*+/<=>?%5B\\%5D^`{}", "_21_22_24_26_27_28_29_2A_2B_2F_3C=_3E_3F_5B_5C_5D_5E_60_7B_7D"},
		{"GET /s?~more", "GET%20/s?~more", "GET_20_2Fs_3F_7Emore"},
		{"GET /s?~again&page&path:q", "GET%20/s?~again&page&path%3Aq", "GET_20_2Fs_3F_7Eagain_26page_26path_3Aq"},
		{"", "", ""},
	} {
		if got := string(wire.Plain.Append(nil, []byte(test.text))); got != test.plain {
			t.Errorf("%q in plain is %q, want %q", test.text, got, test.plain)
		}
		if got := string(wire.Strict.Append(nil, []byte(test.text))); got != test.strict {
			t.Errorf("%q in strict is %q, want %q", test.text, got, test.strict)
		}
	}
}

// A key without an escape is its text.
func TestEscapes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.SampledFrom(encodings).Draw(t, "encoding")
		enc := e.Append(nil, anyText(12).Draw(t, "text"))
		text, err := e.AppendDecoded(nil, enc)
		if err != nil || e.Escapes(enc) == bytes.Equal(text, enc) {
			t.Fatalf("%q: escapes %v, text %q, %v", enc, e.Escapes(enc), text, err)
		}
	})
}

// anyText generates any bytes, those with a meaning on the wire more often.
func anyText(most int) *rapid.Generator[[]byte] {
	return rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom([]byte(".:|@#,;[]%_&?=/ ~\n\x00\xffaZ0")), rapid.Byte()), 0, most)
}

func TestEncodingRoundTripsAnyBytes(t *testing.T) {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	alphabet := map[wire.Encoding]string{
		wire.Plain:  letters + "!\"$%&'()*+-/<=>?\\^_`{}~",
		wire.Strict: letters + "-=_",
	}
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.SampledFrom(encodings).Draw(t, "encoding")
		text := anyText(100).Draw(t, "text")
		enc := e.Append([]byte("before"), text)[len("before"):]
		if i := strings.IndexFunc(string(enc), func(r rune) bool { return !strings.ContainsRune(alphabet[e], r) }); i >= 0 {
			t.Fatalf("%q in %v is %q", text, e, enc)
		}
		got, err := e.AppendDecoded([]byte("x"), enc)
		if err != nil || string(got) != "x"+string(text) {
			t.Fatalf("%q in %v is %q, which decodes to %q (%v)", text, e, enc, got[1:], err)
		}
	})
}

func TestAppendDecoded(t *testing.T) {
	for _, test := range []struct {
		encoding wire.Encoding
		enc      string
		want     string
		ok       bool
	}{
		{wire.Plain, "a%2e%2E", "a..", true},
		{wire.Plain, "b=2&q=_26 é", "b=2&q=_26 é", true}, // less careful senders
		{wire.Plain, "%", "", false},
		{wire.Plain, "a%4", "", false},
		{wire.Plain, "%g0", "", false},
		{wire.Plain, "%0g", "", false},
		{wire.Plain, "%%41", "", false},
		{wire.Strict, "a_2e_2E%", "a..%", true},
		{wire.Strict, "a_", "", false},
		{wire.Strict, "_G1", "", false},
	} {
		got, err := test.encoding.AppendDecoded(nil, []byte(test.enc))
		if (err == nil) != test.ok || test.ok && string(got) != test.want || !test.ok && !errors.Is(err, wire.ErrEncoding) {
			t.Errorf("%q in %v decodes to %q, %v", test.enc, test.encoding, got, err)
		}
	}
}

func TestParseEncodingReadsItsNames(t *testing.T) {
	for _, e := range encodings {
		if got, err := wire.ParseEncoding(e.String()); got != e || err != nil {
			t.Errorf("%q is %v, %v", e, got, err)
		}
	}
	if e, err := wire.ParseEncoding(""); e != wire.Plain || err != nil {
		t.Errorf("nothing is %v, %v", e, err)
	}
	if _, err := wire.ParseEncoding("Plain"); err == nil {
		t.Error("Plain is taken for plain")
	}
}

// A fitted text keeps the limit when it is encoded, stays what it is when it is
// fitted again, differs for different texts, and never ends in half an escape of
// its own.
func TestFit(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", "Z", "&", ".", "~", "%25", "%C3", "\x00", "\xff"})
	long := rapid.Map(rapid.SliceOfN(piece, 0, 700), func(p []string) string { return strings.Join(p, "") })
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.SampledFrom(encodings).Draw(t, "encoding")
		a, b := long.Draw(t, "a"), long.Draw(t, "b")
		if rapid.Bool().Draw(t, "double") {
			a += a
		}
		if rapid.Bool().Draw(t, "related") {
			b = a + "x"
		}
		fitA, fitB := string(e.Fit([]byte(a))), string(e.Fit([]byte(b)))
		size := len(e.Append(nil, []byte(fitA)))
		if size > e.Limit() {
			t.Fatalf("%v of %q is %d bytes, the limit is %d", e, fitA, size, e.Limit())
		}
		if again := string(e.Fit([]byte(fitA))); again != fitA {
			t.Fatalf("%q fitted again is %q", fitA, again)
		}
		if len(e.Append(nil, []byte(a))) <= e.Limit() {
			if fitA != a {
				t.Fatalf("%q fits, and was made %q", a, fitA)
			}
			return
		}
		if (a == b) != (fitA == fitB) {
			t.Fatalf("%q and %q are made %q and %q", a, b, fitA, fitB)
		}
		kept, sum, ok := cutLast(fitA, "~")
		if !ok || len(sum) != 32 || strings.Trim(sum, "0123456789abcdef") != "" || !strings.HasPrefix(a, kept) {
			t.Fatalf("%q was made %q", a, fitA)
		}
		if tail := kept[max(0, len(kept)-2):]; strings.Contains(tail, "%") {
			t.Fatalf("%q ends in half an escape", kept)
		}
		if size < e.Limit()-6 {
			t.Fatalf("%d bytes of %d are used", size, e.Limit())
		}
	})
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

func TestEncodingDoesNotAllocate(t *testing.T) {
	text := []byte("GET /search?q=a.b%20c")
	for _, e := range encodings {
		enc, dec := make([]byte, 0, 200), make([]byte, 0, 200)
		if n := testing.AllocsPerRun(100, func() {
			enc = e.Append(enc[:0], e.Fit(text))
			dec, _ = e.AppendDecoded(dec[:0], enc)
		}); n != 0 || !bytes.Equal(dec, text) {
			t.Errorf("%v: %v allocations, %q", e, n, dec)
		}
	}
}

func FuzzAppendDecoded(f *testing.F) {
	for _, enc := range []string{"q=a%2Eb", "q=a_2Eb", "%", "_4", "%%41"} {
		f.Add([]byte(enc))
	}
	f.Fuzz(func(t *testing.T, enc []byte) {
		for _, e := range encodings {
			text, err := e.AppendDecoded(nil, enc)
			if err != nil {
				continue
			}
			if len(text) > len(enc) {
				t.Fatalf("%v: %q decodes to %q", e, enc, text)
			}
			if again, err := e.AppendDecoded(nil, e.Append(nil, text)); err != nil || !bytes.Equal(again, text) {
				t.Fatalf("%v: %q comes back as %q (%v)", e, text, again, err)
			}
		}
	})
}
