package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKeys(t *testing.T) {
	a, b := strings.Repeat("a", 32), strings.Repeat("b", 64)
	for name, test := range map[string]struct{ text, want, err string }{
		"one": {a, a, ""}, "with a line end": {a + "\r\n", a, ""}, "two": {a + "\n" + b + "\n", a + "," + b, ""},
		"too short": {a + "\n" + b[:31] + "\n", "", "line 2"}, "too short without its line end": {a[:31] + "\n", "", "31 bytes, want 32"},
		"an empty line": {a + "\n\n" + b, "", "line 2"}, "empty": {"\n", "", "is empty"},
	} {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("TEST_TRUST_KEY", test.text)
		for _, where := range []Aggregator{{KeyFile: path}, {KeyEnv: "TEST_TRUST_KEY"}} {
			keys, err := where.Keys()
			var got []string
			for _, k := range keys {
				got = append(got, string(k))
			}
			if strings.Join(got, ",") != test.want && test.err == "" || (err == nil) != (test.err == "") {
				t.Errorf("%s: %q, %v", name, got, err)
			}
			if err != nil && (strings.Contains(err.Error(), a[:31]) || where.KeyFile != "" && !strings.Contains(err.Error(), test.err)) {
				t.Errorf("%s: %v, want an error with %q and no key", name, err, test.err)
			}
			signs, signErr := where.SigningKey()
			if err == nil && string(signs) != got[0] || (err == nil) != (signErr == nil) {
				t.Errorf("%s: signs with %q, %v", name, signs, signErr)
			}
		}
	}
	if _, err := (Aggregator{KeyFile: "/does/not/exist"}).Keys(); err == nil || !strings.Contains(err.Error(), "/does/not/exist") {
		t.Error(err)
	}
	if key, err := (Aggregator{}).SigningKey(); key != nil || err != nil {
		t.Errorf("%q, %v", key, err)
	}
}

func TestWarningsOfOpenListeners(t *testing.T) {
	for settings, want := range map[string]int{
		"": 0, "listen: ':8125'": 1, "listen: '0.0.0.0:8125'": 1, "listen: 'tcp://10.0.0.5:8125'": 1, "listen: 'statsd.example:8125'": 1,
		"listen: ['localhost:1', '127.0.0.5:1', '[::1]:1', 'tcp://127.0.0.1:1', 'unix:///run/a.sock', 'unixstream:///run/b.sock']": 0,
		"listen: [':1', 'tcp://:2', '127.0.0.1:3']":               2,
		"listen: ':8125', trust: signed, key_env: K":              0,
		"listen: ':8125', key_env: K":                             1,
		"listen: ':8125', trust: listed, senders: ['10.0.0.0/8']": 0,
		"listen: ':8125', source: kafka":                          0,
	} {
		f, err := Parse("x", []byte(good+"aggregator: {"+settings+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		got := f.Warnings()
		if len(got) != want {
			t.Errorf("%s: %v", settings, got)
		}
		for _, w := range got {
			if !strings.Contains(w.Hint, "aggregator.trust") || !strings.Contains(w.Message, "aggregator.listen") || w.Line != 2 || w.Severity != SeverityWarning {
				t.Errorf("%s: %+v", settings, w)
			}
		}
	}
}
