package base

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

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

// anyPath generates paths of bytes that are special in some syntax, and of any other bytes.
func anyPath() *rapid.Generator[string] {
	special := rapid.SampledFrom([]byte("%%%&&==++;:/?#~aA09fF ._-\x00\x7f\xc3\xa9\xff|@,"))
	b := rapid.OneOf(special, rapid.Byte())
	return rapid.Map(rapid.SliceOfN(b, 0, 24), func(b []byte) string { return string(b) })
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
	rapid.Check(t, func(t *rapid.T) { checkAppendPath(t, anyPath().Draw(t, "path")) })
}

func FuzzAppendPath(f *testing.F) {
	for _, path := range []string{"/a/%7e%2f", "%%41%", "/é\x00\xff"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) { checkAppendPath(t, path) })
}
