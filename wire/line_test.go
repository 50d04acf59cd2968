package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/wire"
)

func TestLineGolden(t *testing.T) {
	for _, test := range []struct {
		prefix, text string
		encoding     wire.Encoding
		want         string
	}{
		{"shop", "b=2&q=1", wire.Plain, "shop.hot_param.b=2&q=1"}, // the reference article's
		{"shop.search-terms", "GET /search?q=a.b:c", wire.Plain, "shop.search-terms.hot_param.GET%20/search?q=a%2Eb%3Ac"},
		{"shop.search-terms", "GET /search?q=a.b:c", wire.Strict, "shop.search-terms.hot_param.GET_20_2Fsearch_3Fq=a_2Eb_3Ac"},
	} {
		if got := string(wire.AppendKey([]byte(test.prefix), test.encoding, []byte(test.text))); got != test.want {
			t.Errorf("the name is %q, want %q", got, test.want)
		}
	}
}

func TestParseLine(t *testing.T) {
	name := "shop.hot_param.b=2&q=1"
	for _, test := range []struct {
		value string
		n     int64
		err   error
	}{
		{":1|c", 1, nil},
		{":0|c", 0, nil},
		{":007|c", 7, nil},
		{fmt.Sprintf(":%d|c", int64(wire.MaxCount)), wire.MaxCount, nil},
		{fmt.Sprintf(":%d|c", int64(wire.MaxCount)+1), 0, wire.ErrMalformed},
		{":9999999999999999999999|c", 0, wire.ErrMalformed},
		{":1|c|@0.1", 10, nil},
		{":2|c|@0.5|#env:prod,az:a", 4, nil},
		{":2|c|#env:prod|@0.5", 4, nil},
		{":3|c|#", 3, nil},
		{":3|c|c:in-1234|T1656581400", 3, nil}, // later DogStatsD fields
		{":3|c|", 3, nil},
		{":1:2:3|c", 6, nil},
		{":1:2|c|@0.5", 6, nil},
		{":1.5|c", 2, nil},
		{":1.4:1.4|c", 3, nil},
		{":1e3|c", 1000, nil},
		{":+5|c", 5, nil},
		{":-0.2|c", 0, nil},
		{":-1|c", 0, wire.ErrNegative},
		{":2:-5|c", 0, wire.ErrNegative},
		{":5:-2|c", 3, nil},
		{":1|g", 0, wire.ErrNotCounter},
		{":+1|g", 0, wire.ErrNotCounter},
		{":1|ms|@0.1", 0, wire.ErrNotCounter},
		{":1|C", 0, wire.ErrNotCounter},
		{":x|h", 0, wire.ErrNotCounter},
		{"", 0, wire.ErrMalformed},
		{":", 0, wire.ErrMalformed},
		{":1", 0, wire.ErrMalformed},
		{":|c", 0, wire.ErrMalformed},
		{":1|", 0, wire.ErrMalformed},
		{":1||", 0, wire.ErrMalformed},
		{"|c", 0, wire.ErrMalformed},
		{":x|c", 0, wire.ErrMalformed},
		{":1:|c", 0, wire.ErrMalformed},
		{":0x10|c", 0, wire.ErrMalformed},
		{":inf|c", 0, wire.ErrMalformed},
		{":nan|c", 0, wire.ErrMalformed},
		{":1_0|c", 0, wire.ErrMalformed},
		{":1e999|c", 0, wire.ErrMalformed},
		{":1e308:1e308|c", 0, wire.ErrMalformed},
		{":1|c|@0", 0, wire.ErrMalformed},
		{":1|c|@2", 0, wire.ErrMalformed},
		{":1|c|@-1", 0, wire.ErrMalformed},
		{":1|c|@", 0, wire.ErrMalformed},
		{":1|c|@x", 0, wire.ErrMalformed},
		{":1000000|c|@1e-300", 0, wire.ErrMalformed},
	} {
		l, err := wire.ParseLine([]byte(name + test.value))
		if !errors.Is(err, test.err) || l.N != test.n {
			t.Errorf("%q is %d, %v; want %d, %v", test.value, l.N, err, test.n, test.err)
		}
		if err == nil && (string(l.Prefix) != "shop" || string(l.Key) != "b=2&q=1") {
			t.Errorf("%q: prefix %q, key %q", test.value, l.Prefix, l.Key)
		}
	}
}

func TestParseLineOfOtherNames(t *testing.T) {
	for line, want := range map[string]error{
		"requests:1|c":            wire.ErrForeign,
		"shop.hot_params.k:1|c":   wire.ErrForeign,
		"hot_param.k:1|c":         wire.ErrForeign,
		"_e{5,4}:title|text":      wire.ErrForeign,
		"":                        wire.ErrMalformed,
		"requests":                wire.ErrMalformed,
		"requests:1":              wire.ErrMalformed,
		".hot_param.k:1|c":        wire.ErrMalformed,
		"shop.hot_param.:1|c":     wire.ErrMalformed,
		"shop.hot_param.":         wire.ErrMalformed,
		"a.b.c.d.hot_param.k:1|c": nil,
	} {
		if _, err := wire.ParseLine([]byte(line)); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", line, err, want)
		}
	}
}

// Any text comes back from a line that was made of it.
func TestLinesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.SampledFrom(encodings).Draw(t, "encoding")
		text := append(anyText(100).Draw(t, "text"), 'x')
		n := rapid.Int64Range(0, wire.MaxCount).Draw(t, "n")
		prefix := rapid.SampledFrom([]string{"shop", "shop.search-terms", "a.b_c.d"}).Draw(t, "prefix")
		line := fmt.Appendf(wire.AppendKey([]byte(prefix), e, text), ":%d|c", n)
		l, err := wire.ParseLine(line)
		if err != nil || string(l.Prefix) != prefix || l.N != n {
			t.Fatalf("%q is %+v, %v", line, l, err)
		}
		if got, err := e.AppendDecoded(nil, l.Key); err != nil || !bytes.Equal(got, text) {
			t.Fatalf("%q holds %q (%v), want %q", line, got, err, text)
		}
	})
}

func TestParseLineDoesNotAllocate(t *testing.T) {
	for _, line := range []string{"shop.hot_param.b=2&q=1:1|c", "shop.hot_param.k:1:2.5|c|@0.5|#t", "other:1|c", "x"} {
		b := []byte(line)
		if n := testing.AllocsPerRun(100, func() { _, _ = wire.ParseLine(b) }); n != 0 {
			t.Errorf("%q: %v allocations", line, n)
		}
	}
}

// What the quick reader takes is what the thorough one makes of it, and it takes
// every line of the plainest form.
func TestCutCountAgreesWithParseLine(t *testing.T) {
	const head = "shop.hot_param."
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringMatching(`[a-z0-9=&?/%|. -]{1,12}`).Draw(t, "key")
		value := rapid.OneOf(rapid.StringMatching(`[0-9]{1,20}`), rapid.StringMatching(`[0-9:.+-]{0,5}`)).Draw(t, "value")
		tail := rapid.SampledFrom([]string{"|c", "|c", "|c", "|g", "|c|@0.5", "|c|#a:1|c", "|", "c", ""}).Draw(t, "tail")
		line := []byte(head + key + ":" + value + tail)
		got, n, ok := wire.CutCount(line, head)
		want, err := wire.ParseLine(line)
		switch {
		case ok && (err != nil || n != want.N || !bytes.Equal(got, want.Key) || string(want.Prefix) != "shop"):
			t.Fatalf("%q is %q, %d; want %+v, %v", line, got, n, want, err)
		case !ok && err == nil && tail == "|c" && len(value) <= 18 && strings.Trim(value, "0123456789") == "":
			t.Fatalf("%q is not taken", line)
		}
	})
}

func TestCutCountRefusesOtherLines(t *testing.T) {
	for _, line := range []string{"", "|c", "1|c", "shop.hot_param.:1|c", "shop.hot_param.k|c", "shop.hot_param.k:|c", "other.hot_param.k:1|c", "shop.hot_param."} {
		if key, n, ok := wire.CutCount([]byte(line), "shop.hot_param."); ok {
			t.Errorf("%q is %q, %d", line, key, n)
		}
	}
	if _, _, ok := wire.CutCount([]byte("k:1|c"), ""); ok {
		t.Error("a line without a head is taken")
	}
}

func FuzzParseLine(f *testing.F) {
	for _, line := range []string{
		"shop.hot_param.b=2&q=1:1|c", "a.hot_param.k:1:2|c|@0.1|#t:1", "a.hot_param.k:-1.5e3|c", "hot_param:|", ".hot_param.:|c",
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		l, err := wire.ParseLine(line)
		key, n, ok := wire.CutCount(line, "shop.hot_param.")
		if ok && (err != nil || string(l.Prefix) != "shop" || !bytes.Equal(key, l.Key) || n != l.N) {
			t.Fatalf("%q is %q, %d at a glance, and %+v, %v", line, key, n, l, err)
		}
		if err != nil {
			return
		}
		if l.N < 0 || l.N > wire.MaxCount || len(l.Prefix) == 0 || len(l.Key) == 0 {
			t.Fatalf("%q is %+v", line, l)
		}
		if !strings.HasPrefix(string(line), string(l.Prefix)+".hot_param."+string(l.Key)+":") {
			t.Fatalf("%q is %+v", line, l)
		}
	})
}

func BenchmarkCutCount(b *testing.B) {
	line := []byte("shop.search-terms.hot_param.GET%20/search?q=phone:12|c")
	b.ReportAllocs()
	for b.Loop() {
		_, _, _ = wire.CutCount(line, "shop.search-terms.hot_param.")
	}
}

func BenchmarkParseLine(b *testing.B) {
	line := []byte("shop.search-terms.hot_param.GET%20/search?q=phone:12|c")
	b.ReportAllocs()
	for b.Loop() {
		_, _ = wire.ParseLine(line)
	}
}
