package wire_test

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/wire"
)

func TestOriginGolden(t *testing.T) {
	const want = "shop.search.hot_origin.GET%20/search?q=phone:12|c|#c:10%2E0%2E0%2E7"
	line := wire.AppendOrigin(nil, wire.Plain, "shop.search", []byte("GET /search?q=phone"), wire.OriginLine{Kind: wire.Caller, Name: []byte("10.0.0.7"), N: 12})
	if string(line) != want {
		t.Errorf("the line is %q, want %q", line, want)
	}
	if _, err := wire.ParseLine(line); !errors.Is(err, wire.ErrForeign) {
		t.Errorf("as a count it is %v, want foreign", err)
	}
}

func TestOriginRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.Byte(), 1, 60).Draw(t, "text")
		want := wire.OriginLine{
			Kind: rapid.SampledFrom([]wire.OriginKind{wire.Route, wire.Caller, wire.KeyUsage, wire.RouteUsage}).Draw(t, "kind"),
			Name: rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "name"),
			N:    rapid.Int64Range(0, wire.MaxCount).Draw(t, "n"),
		}
		e := rapid.SampledFrom([]wire.Encoding{wire.Plain, wire.Strict}).Draw(t, "encoding")
		line := wire.AppendOrigin(nil, e, "shop.x", text, want)
		if bytes.ContainsAny(line, "\n\x00") || !wire.IsOrigin(line) {
			t.Fatalf("%q is no origin line", line)
		}
		got, err := wire.ParseOrigin(line)
		if err != nil {
			t.Fatal(err)
		}
		name, err := wire.Plain.AppendDecoded(nil, got.Name)
		if err != nil {
			t.Fatal(err)
		}
		key, err := e.AppendDecoded(nil, got.Key)
		if err != nil {
			t.Fatal(err)
		}
		if string(got.Prefix) != "shop.x" || got.Kind != want.Kind || got.N != want.N || !bytes.Equal(key, text) || !bytes.Equal(name, want.Name[:min(len(want.Name), wire.MaxOrigin)]) {
			t.Fatalf("%q reads %+v of key %q name %q", line, got, key, name)
		}
	})
}

func TestBadOrigins(t *testing.T) {
	for _, line := range []string{
		"a.hot_origin.k:1|c", "a.hot_origin.k:1|c|#", "a.hot_origin.k:1|c|#c:", "a.hot_origin.k:1|c|#x:1", "a.hot_origin.k:-1|c|#c:1",
		"a.hot_origin.:1|c|#c:1", ".hot_origin.k:1|c|#c:1", "a.hot_origin.k:1|g|#c:1", "a.hot_origin.k", "a.hot_origin.k:9999999999999|c|#c:1",
	} {
		if o, err := wire.ParseOrigin([]byte(line)); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%q reads %+v, %v; want malformed", line, o, err)
		}
	}
	if _, err := wire.ParseOrigin([]byte("a.hot_param.k:1|c")); !errors.Is(err, wire.ErrForeign) {
		t.Errorf("a count is %v, want foreign", err)
	}
}

func FuzzParseOrigin(f *testing.F) {
	f.Add([]byte("shop.search.hot_origin.GET%20/s?q=1:12|c|#c:10%2E0%2E0%2E7"))
	f.Add([]byte("a.hot_origin.k:1|c|#r:x"))
	f.Fuzz(func(t *testing.T, line []byte) {
		o, err := wire.ParseOrigin(line)
		if err != nil {
			return
		}
		if o.N < 0 || o.N > wire.MaxCount || len(o.Name) == 0 || len(o.Key) == 0 || len(o.Prefix) == 0 {
			t.Errorf("%q reads %+v", line, o)
		}
	})
}
