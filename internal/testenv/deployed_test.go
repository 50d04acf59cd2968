package testenv

import (
	"strings"
	"testing"
)

func TestDeployed(t *testing.T) {
	for _, test := range []struct{ file, key, value, want string }{
		{"statsd/config.js", "port", "1", "\n  port: 1,\n"},
		{"graphite/carbon.conf", "USER", "", "\nUSER = \n"},
		{"graphite/local_settings.py", "CARBONLINK_HOSTS", `["h:1"]`, "\nCARBONLINK_HOSTS = [\"h:1\"]\n"},
		{"graphite/gunicorn.conf.py", "bind", "$1", "\nbind = $1\n"},
	} {
		text, err := deployed(test.file, map[string]string{test.key: test.value})
		if err != nil {
			t.Error(err)
		}
		if !strings.Contains(string(text), test.want) {
			t.Errorf("%s with another %s has no %q", test.file, test.key, test.want)
		}
	}
	for _, file := range []string{"statsd/config.js", "graphite/carbon.conf"} {
		if _, err := deployed(file, map[string]string{"moon": "1"}); err == nil || !strings.Contains(err.Error(), file+" sets moon 0 times") {
			t.Errorf("a key that %s does not set: %v", file, err)
		}
	}
}
