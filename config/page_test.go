package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestPageSettings(t *testing.T) {
	f, err := Parse("x", []byte(good+"aggregator: {page: off, page_token_env: T, page_hosts: [hotparam.example, 10.0.0.5, '::1']}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Aggregator{Page: PageOff, PageTokenEnv: "T", PageHosts: []string{"hotparam.example", "10.0.0.5", "::1"}}
	if got := f.Aggregator; got.Page != want.Page || got.PageTokenEnv != want.PageTokenEnv || !reflect.DeepEqual(got.PageHosts, want.PageHosts) {
		t.Errorf("got %+v", got)
	}
	if got := (Aggregator{}).WithDefaults().Page; got != PageOn {
		t.Errorf("without a word the page is %q", got)
	}
}

func TestPageToken(t *testing.T) {
	for name, test := range map[string]struct{ text, want, err string }{
		"good":      {"0123456789abcdef\n", "0123456789abcdef", ""},
		"too short": {"0123456789abcde\n", "", "15 bytes, want 16"},
		"empty":     {"\n", "", "empty"},
	} {
		path := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("TEST_PAGE_TOKEN", test.text)
		for _, where := range []Aggregator{{PageTokenFile: path}, {PageTokenEnv: "TEST_PAGE_TOKEN"}} {
			got, err := where.PageToken()
			if got != test.want || (err == nil) != (test.err == "") {
				t.Errorf("%s: %q, %v", name, got, err)
			}
			if err != nil && (!strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), "0123456789")) {
				t.Errorf("%s: %v, want an error with %q and no token", name, err, test.err)
			}
		}
	}
	if token, err := (Aggregator{}).PageToken(); token != "" || err != nil {
		t.Errorf("%q, %v", token, err)
	}
}
