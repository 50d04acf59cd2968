package rules

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTextGolden(t *testing.T) {
	for _, test := range []struct {
		want   string
		route  string
		params []Param
	}{
		{"GET /search?b=2&q=1", "GET /search", []Param{{Query, "q", "1"}, {Query, "b", "2"}}},
		{"GET /search", "GET /search", nil},
		{"GET /u/{id}?path:id=a%2Fb&q=", "GET /u/{id}", []Param{{Query, "q", ""}, {Path, "id", "a/b"}}},
		{"r?x=1&path:x=1&rpc:x=1", "r", []Param{{RPC, "x", "1"}, {Path, "x", "1"}, {Query, "x", "1"}}},
	} {
		if got := Text(test.route, test.params...); got != test.want {
			t.Errorf("Text is %q, want %q", got, test.want)
		}
	}
}

func TestSourcesRoundTrip(t *testing.T) {
	for s := Path; s < sources; s++ {
		if got, ok := ParseSource(s.String()); got != s || !ok {
			t.Errorf("ParseSource(%q) is %v, %v", s, got, ok)
		}
		if got, want := Text("r", Param{Source: s}), "r?"+s.String()+":="; got != want {
			t.Errorf("Text is %q, want %q", got, want)
		}
	}
	if s, ok := ParseSource("query"); s != Query || !ok {
		t.Errorf("query is %v, %v", s, ok)
	}
	if _, ok := ParseSource("body"); ok {
		t.Error("body is a source")
	}
}

func TestParseKeyReadsWhatStringWrote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := Key{Rule: rapid.StringMatching(`[a-z0-9_-]{1,64}`).Draw(t, "rule"), Text: anyBytes().Draw(t, "text")}
		if got, ok := ParseKey(k.String()); got != k || !ok {
			t.Fatalf("ParseKey(%q) is %+v, %v", k, got, ok)
		}
	})
	for _, member := range []string{"", "rule", " text"} {
		if k, ok := ParseKey(member); ok {
			t.Errorf("ParseKey(%q) is %+v", member, k)
		}
	}
}

func TestHashIsNeverZeroAndTellsKeysApart(t *testing.T) {
	seen := make(map[uint64]string)
	for i := range 10_000 {
		k := strings.Repeat("k", i%100) + string(rune('a'+i/100))
		h := Hash([]byte(k))
		if other, ok := seen[h]; h == 0 || ok && other != k {
			t.Errorf("Hash(%q) is %d, as is that of %q", k, h, other)
		}
		seen[h] = k
	}
}
