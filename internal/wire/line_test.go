package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/wire"
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

// A sample's count and its number of observed events are read from its line.
func TestSeen(t *testing.T) {
	for line, want := range map[string]struct {
		sampled bool
		n, seen int64
	}{
		"a.hot_param.k:3|c":                 {false, 3, 0},
		"a.hot_param.k:3|c|@1":              {false, 3, 3},
		"a.hot_param.k:3|c|#a":              {false, 3, 0},
		"a.hot_param.k:1|c|@0.1":            {true, 10, 1},
		"a.hot_param.k:1:2|c|@0.1|#a:b":     {true, 30, 3},
		"a.hot_param.k:1|c:2|c|@0.5:320|ms": {true, 5, 3},
		"a.hot_param.k:5|c|@0.5:-3|c":       {true, 7, 2},
		"a.hot_param.k:5|c:-3|c|@0.9":       {true, 1, 2},
		"a.hot_param.k:-3|c:5|c|@0.1":       {true, 47, 2},
		"a.hot_param.k:0.5|c|@0.1":          {true, 5, 0},
		"a.hot_param.k:320|ms|@0.1:4|c":     {false, 4, 4},
		"a.hot_param.k:1|c|@0.99":           {true, 1, 1},
		"a.hot_param.k:1099511627776|c|@1":  {false, wire.MaxCount, wire.MaxCount},
		"a.hot_param.k:0|c|@0.1":            {true, 0, 0},
		"a.hot_param.k:1000000|c|@0.000001": {true, 1_000_000_000_000, 1_000_000},
	} {
		l, err := wire.ParseLine([]byte(line))
		if err != nil || l.Sampled != want.sampled || l.N != want.n || want.sampled && l.Seen != want.seen {
			t.Errorf("%q is %+v, %v; want %+v", line, l, err, want)
		}
	}
}

func TestParseLine(t *testing.T) {
	name := "shop.hot_param.b=2&q=1"
	for _, test := range []struct {
		value string
		n     int64
		frac  float64
		err   error
	}{
		{":1|c", 1, 0, nil},
		{":0|c", 0, 0, nil},
		{":007|c", 7, 0, nil},
		{fmt.Sprintf(":%d|c", int64(wire.MaxCount)), wire.MaxCount, 0, nil},
		{fmt.Sprintf(":%d|c", int64(wire.MaxCount)+1), 0, 0, wire.ErrMalformed},
		{fmt.Sprintf(":%d:0.5|c", int64(wire.MaxCount)), 0, 0, wire.ErrMalformed},
		{fmt.Sprintf(":%d:-0.5|c", int64(wire.MaxCount)), wire.MaxCount - 1, 0.5, nil},
		{":9999999999999999999999|c", 0, 0, wire.ErrMalformed},
		{":1|c|@0.1", 10, 0, nil},
		{":1|c|@1", 1, 0, nil},
		{":9|c|@0.009", 1000, 0, nil}, // not 1000.0000000000001
		{":0.7:0.1:0.2|c", 1, 0, nil}, // not 0.9999999999999999
		{":1|c|@0.4", 2, 0.5, nil},
		{":2|c|@0.5|#env:prod,az:a", 4, 0, nil},
		{":2|c|#env:prod|@0.5", 4, 0, nil},
		{":3|c|#", 3, 0, nil},
		{":3|c|c:in-1234|T1656581400", 3, 0, nil},
		{":3|c|T1656581400|c:in-1234|@0.5|e:it-false,cn-a|card:low|x|", 6, 0, nil},
		{":3|c|", 3, 0, nil},
		{":3|c||#a", 3, 0, nil},
		{":3|c|c", 3, 0, nil},
		{":3|c|c:2|c", 3, 0, nil}, // a container, not a sample
		{":1:2:3|c", 6, 0, nil},
		{":1:2|c|@0.5", 6, 0, nil},
		{":1.5|c", 1, 0.5, nil},
		{":1.75:1.75|c", 3, 0.5, nil},
		{":1e3|c", 1000, 0, nil},
		{":+5|c", 5, 0, nil},
		{":.5|c", 0, 0.5, nil},
		{":1e-3|c", 0, 1e-3, nil},
		{":-1|c", 0, 0, wire.ErrNegative},
		{":-0.2|c", 0, 0, wire.ErrNegative},
		{":2:-5|c", 0, 0, wire.ErrNegative},
		{":5:-2|c", 3, 0, nil},
		{":-0|c", 0, 0, nil},
		// Several samples.
		{":1|c:2|c", 3, 0, nil},
		{":1|c:2|c|@0.5:3|ms", 5, 0, nil},
		{":3|ms|@0.1:1|c:x|s", 1, 0, nil},
		{":1|c|@0.5:2:3|c|#a:b", 7, 0, nil},
		{":1|c:-2|c", 0, 0, wire.ErrNegative},
		{":1|c|#a:2|c", 1, 0, nil}, // a tag, not a sample
		{":1|ms:2|g", 0, 0, wire.ErrNotCounter},
		{":1|c|@0.5:", 0, 0, wire.ErrMalformed},
		{":1|c:", 0, 0, wire.ErrMalformed},
		{":1|c:2", 0, 0, wire.ErrMalformed},
		{":1|c::2|c", 0, 0, wire.ErrMalformed},
		{":1|c:abc", 0, 0, wire.ErrMalformed},
		{":1|ms:", 0, 0, wire.ErrMalformed},
		{":1|g", 0, 0, wire.ErrNotCounter},
		{":+1|g", 0, 0, wire.ErrNotCounter},
		{":1|ms|@0.1", 0, 0, wire.ErrNotCounter},
		{":1|ms|@x", 0, 0, wire.ErrNotCounter},
		{":1|ms|Tx", 0, 0, wire.ErrNotCounter},
		{":1|C", 0, 0, wire.ErrNotCounter},
		{":x|h", 0, 0, wire.ErrNotCounter},
		{"", 0, 0, wire.ErrMalformed},
		{":", 0, 0, wire.ErrMalformed},
		{":1", 0, 0, wire.ErrMalformed},
		{":|c", 0, 0, wire.ErrMalformed},
		{":1|", 0, 0, wire.ErrMalformed},
		{":1||", 0, 0, wire.ErrMalformed},
		{"|c", 0, 0, wire.ErrMalformed},
		{":x|c", 0, 0, wire.ErrMalformed},
		{":1:|c", 0, 0, wire.ErrMalformed},
		{":0x10|c", 0, 0, wire.ErrMalformed},
		{":inf|c", 0, 0, wire.ErrMalformed},
		{":nan|c", 0, 0, wire.ErrMalformed},
		{":1_0|c", 0, 0, wire.ErrMalformed},
		{":1e999|c", 0, 0, wire.ErrMalformed},
		{":1e308:1e308|c", 0, 0, wire.ErrMalformed},
		{":1e16:1:-1e16|c", 0, 0, wire.ErrMalformed}, // would not be exact
		{":1|c|@0", 0, 0, wire.ErrMalformed},
		{":1|c|@2", 0, 0, wire.ErrMalformed},
		{":1|c|@-1", 0, 0, wire.ErrMalformed},
		{":1|c|@", 0, 0, wire.ErrMalformed},
		{":1|c|@x", 0, 0, wire.ErrMalformed},
		{":1|c|@0.5|@0.5", 0, 0, wire.ErrMalformed},
		{":1000000|c|@1e-300", 0, 0, wire.ErrMalformed},
		{":1e12|c|@1e-300:-1e12|c|@1e-300", 0, 0, wire.ErrMalformed}, // infinite less infinite
	} {
		l, err := wire.ParseLine([]byte(name + test.value))
		if !errors.Is(err, test.err) || l.N != test.n || l.Frac != test.frac {
			t.Errorf("%q is %d and %v, %v; want %d and %v, %v", test.value, l.N, l.Frac, err, test.n, test.frac, test.err)
		}
		if err == nil && (string(l.Prefix) != "shop" || string(l.Key) != "b=2&q=1") {
			t.Errorf("%q: prefix %q, key %q", test.value, l.Prefix, l.Key)
		}
		if err != nil && (l.Prefix != nil || l.Key != nil) {
			t.Errorf("%q: %+v beside an error", test.value, l)
		}
	}
}

func TestParseLineReadsItsTime(t *testing.T) {
	for _, test := range []struct {
		value string
		when  int64
		ok    bool
	}{
		{"1|c", 0, true},
		{"1|c|T1656581400", 1656581400, true},
		{"1:2|c|@0.5|T1656581400|#a:b", 1656581400, true},
		{"1|c:2|c|T7", 7, true},
		{"1|c|T999999999999999999", 999999999999999999, true},
		{"1|c|#T5", 0, true},
		{"1|ms|T5|@1:1|c", 0, true}, // of the timer
		{"1|c|T", 0, false},
		{"1|c|T0", 0, false},
		{"1|c|T-5", 0, false},
		{"1|c|T1.5", 0, false},
		{"1|c|Tx", 0, false},
		{"1|c|T5:2|c", 0, false},
		{"1|c|T5|T5", 0, false},
		{"1|c|T5|@1:2|c|T6", 0, false},
		{"1|c|T9999999999999999999", 0, false},
	} {
		l, err := wire.ParseLine([]byte("shop.hot_param.k:" + test.value))
		if l.When != test.when || (err == nil) != test.ok || err != nil && !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%q is of %d, %v; want %d", test.value, l.When, err, test.when)
		}
	}
}

func TestParseLineOfOtherNames(t *testing.T) {
	for line, want := range map[string]error{
		"requests:1|c":                             wire.ErrForeign,
		"shop.hot_params.k:1|c":                    wire.ErrForeign,
		"hot_param.k:1|c":                          wire.ErrForeign,
		"_e{5,4}:title|text":                       wire.ErrEvent,
		"_e{5,24}:a.hot_param.k|a.hot_param.k:1|c": wire.ErrEvent,
		"_sc|a.hot_param.k|0|m:x:1|c":              wire.ErrEvent,
		"_sc":                                      wire.ErrMalformed,
		"_sc.hot_param.k:1|c":                      nil,
		"_e.hot_param.k:1|c":                       nil,
		"requests:1|c|#path:/x.hot_param.k:1|c":    wire.ErrForeign,
		"requests,path=/x.hot_param.k:1|c":         wire.ErrForeign,
		"requests[a.hot_param.k]:1|c":              wire.ErrForeign,
		"requests[:1|c":                            wire.ErrMalformed,
		"":                                         wire.ErrMalformed,
		"requests":                                 wire.ErrMalformed,
		"requests:1":                               wire.ErrMalformed,
		".hot_param.k:1|c":                         wire.ErrMalformed,
		"shop.hot_param.:1|c":                      wire.ErrMalformed,
		"shop.hot_param.":                          wire.ErrMalformed,
		"a.b.c.d.hot_param.k:1|c":                  nil,
	} {
		if _, err := wire.ParseLine([]byte(line)); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", line, err, want)
		}
	}
}

// Any text is read back from a line that holds it.
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

func TestParseLineInDoesNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 100)
	for _, line := range []string{
		"shop.hot_param.b=2&q=1:1|c", "shop.hot_param.k:1:2.5|c|@0.3|#t|T5", "shop.hot_param.k,a=b:1|c:2|ms", "shop[a=b].hot_param.k[c=d]:1|c",
		"other:1|c", "x", "_e{1,1}:x|y",
	} {
		b := []byte(line)
		if n := testing.AllocsPerRun(100, func() { _, _, _ = wire.ParseLineIn(buf, b) }); n != 0 {
			t.Errorf("%q: %v allocations", line, n)
		}
		if strings.Contains(line, "[") {
			continue
		}
		if n := testing.AllocsPerRun(100, func() { _, _ = wire.ParseLine(b) }); n != 0 {
			t.Errorf("%q without a buffer: %v allocations", line, n)
		}
	}
}

// The quick reader agrees with the thorough one, and accepts every line of the plainest form.
func TestCutCountAgreesWithParseLine(t *testing.T) {
	const head = "shop.hot_param."
	plain := rapid.StringOfN(rapid.RuneFrom([]rune("az09AZ=&?/%|. -+<>^_~Y\"")), 1, 24, -1)
	any := rapid.StringOfN(rapid.RuneFrom([]rune("aZ09%=:,;#[]\\é")), 1, 24, -1)
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.OneOf(plain, plain, any).Draw(t, "key")
		if rapid.Bool().Draw(t, "one separator") {
			at := rapid.IntRange(0, len(key)).Draw(t, "at")
			key = key[:at] + rapid.SampledFrom([]string{":", ",", ";", "#", "[", "]", "[t]"}).Draw(t, "separator") + key[at:]
		}
		value := rapid.OneOf(rapid.StringMatching(`[0-9]{1,20}`), rapid.StringMatching(`[0-9:.+-]{0,5}`)).Draw(t, "value")
		tail := rapid.SampledFrom([]string{"|c", "|c", "|c", "|g", "|c|@0.5", "|c|#a:1|c", "|", "c", ""}).Draw(t, "tail")
		line := []byte(head + key + ":" + value + tail)
		got, n, ok := wire.CutCount(line, head)
		want, err := wire.ParseLine(line)
		switch {
		case ok && (err != nil || n != want.N || !bytes.Equal(got, want.Key) || string(want.Prefix) != "shop"):
			t.Fatalf("%q is %q, %d; want %+v, %v", line, got, n, want, err)
		case !ok && err == nil && tail == "|c" && len(value) <= 18 && strings.Trim(value, "0123456789") == "" && !strings.ContainsAny(key, ":,;#[]\\é"):
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
		"shop.hot_param.k:1|c:2|c|@0.5:3|ms", "shop.hot_param.k:1|c|c:ci-1|T1656581400|e:x|card:low", "shop.hot_param.k:1|c|@0.3",
		"shop.hot_param.k,a=b,c=d:1|c", "shop.hot_param.k;a=b:1|c", "shop.hot_param.k#a=b:1|c", "shop[a=b].hot[c=d]_param.k[e=f:g]l:1|c",
		"_e{5,4}:title|text", "_sc|name|0|m:text", "a.hot_param.k[:1|c", "a.hot_param.k]:1|c", "a.hot_param.[a[b]]:1|c", "shop.hot_param.12345678:1|c",
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		l, err := wire.ParseLine(line)
		key, n, ok := wire.CutCount(line, "shop.hot_param.")
		if ok && (err != nil || string(l.Prefix) != "shop" || !bytes.Equal(key, l.Key) || n != l.N || l.Frac != 0 || l.When != 0) {
			t.Fatalf("%q is %q, %d at a glance, and %+v, %v", line, key, n, l, err)
		}
		again, buf, err2 := wire.ParseLineIn([]byte("before"), line)
		if !errors.Is(err2, err) || !bytes.HasPrefix(buf, []byte("before")) || !reflect.DeepEqual(again, l) {
			t.Fatalf("%q is %+v, %v, and behind a buffer %+v, %v", line, l, err, again, err2)
		}
		if err != nil {
			return
		}
		if l.N < 0 || l.N > wire.MaxCount || !(l.Frac >= 0 && l.Frac < 1) || l.N == wire.MaxCount && l.Frac > 0 || l.When < 0 || len(l.Prefix) == 0 || len(l.Key) == 0 {
			t.Fatalf("%q is %+v", line, l)
		}
		if bytes.ContainsAny(l.Prefix, ":,;#[]") || bytes.ContainsAny(l.Key, ":,;#[]") {
			t.Fatalf("%q has tags in its name: %+v", line, l)
		}
		if !bytes.ContainsAny(line, "[") && !strings.HasPrefix(string(line), string(l.Prefix)+".hot_param."+string(l.Key)) {
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
	for _, bench := range []struct{ name, line string }{
		{"etsy", "shop.search-terms.hot_param.GET%20/search?q=phone:12|c"},
		{"sampled", "shop.search-terms.hot_param.GET%20/search?q=phone:12|c|@0.1"},
		{"dogstatsd", "shop.search-terms.hot_param.GET%20/search?q=phone:12|c|#env:prod,az:eu-1a|c:ci-83c0a99c0a54"},
		{"telegraf", "shop.search-terms.hot_param.GET%20/search?q=phone,env=prod,az=eu-1a:12|c"},
		{"signalfx", "shop.search-terms[env=prod,az=eu-1a].hot_param.GET%20/search?q=phone:12|c"},
		{"foreign", "shop.requests.duration:12|ms|#env:prod,az:eu-1a"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			line, buf := []byte(bench.line), make([]byte, 0, 256)
			b.ReportAllocs()
			for b.Loop() {
				_, _, _ = wire.ParseLineIn(buf, line)
			}
		})
	}
}
