package middleware

import (
	"strings"
	"testing"
)

func TestClientKey(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.1":                       "192.0.2.1",
		"192.0.2.1:8080":                  "192.0.2.1",
		"::ffff:192.0.2.1":                "192.0.2.1",
		"[::ffff:192.0.2.1]:80":           "192.0.2.1",
		"2001:db8:1:2:3:4:5:6":            "2001:db8:1:2::/64",
		"[2001:db8:1:2::7]:443":           "2001:db8:1:2::/64",
		"fe80::1%eth0":                    "fe80::/64",
		"[fe80::1%eth0]:80":               "fe80::/64",
		"::1":                             "::/64",
		"":                                "",
		"/var/run/app.sock":               "/var/run/app.sock",
		"example.com:80":                  "example.com:80",
		"2001:db8:1:2:ffff:ffff:ffff:fff": "2001:db8:1:2::/64",
	} {
		if got := ClientKey(addr); got != want {
			t.Errorf("%q: %q, want %q", addr, got, want)
		}
	}
}

func FuzzClientKey(f *testing.F) {
	for _, s := range []string{"", "1.2.3.4:5", "[::1]:2", "::1%x", ":", "[]:", "::ffff:1.2.3.4%z"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, addr string) {
		key := ClientKey(addr)
		if !strings.HasSuffix(key, "/64") && ClientKey(key) != key {
			t.Errorf("%q: %q, and of that %q", addr, key, ClientKey(key))
		}
	})
}
