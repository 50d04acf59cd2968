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

func TestAppendPath(t *testing.T) {
	for _, test := range []struct{ path, want string }{
		{"/search", "/search"},
		{"/%7euser/%41", "/~user/A"},
		{"/a%2fb", "/a%2Fb"},
		{"/caf%c3%a9/é", "/caf%C3%A9/%C3%A9"},
		{"/a+b:c@d!$&'()*,;=", "/a+b:c@d!$&'()*,;="},
		{"/100%/%zz/%4", "/100%25/%25zz/%254"},
		{"/a b\"<>?#[]", "/a%20b%22%3C%3E%3F%23%5B%5D"},
		{"/%2B", "/%2B"},
	} {
		if got := string(AppendPath(nil, test.path)); got != test.want {
			t.Errorf("AppendPath(%q) is %q, want %q", test.path, got, test.want)
		}
	}
}

func checkAppendPath(t interface{ Fatalf(string, ...any) }, path string) {
	once := string(AppendPath([]byte("x"), path))
	if twice := string(AppendPath([]byte("x"), once[1:])); twice != once {
		t.Fatalf("AppendPath(%q) is %q, and of that %q", path, once, twice)
	}
	for i := range len(once) {
		if c := once[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`"<>?#[]{}|\^`+"`", c) >= 0 {
			t.Fatalf("AppendPath(%q) is %q", path, once)
		}
	}
}

func TestAppendPathOfAnyBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkAppendPath(t, anyBytes().Draw(t, "path")) })
}

func FuzzAppendPath(f *testing.F) {
	for _, path := range []string{"/a/%7e%2f", "%%41%", "/é\x00\xff"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) { checkAppendPath(t, path) })
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
