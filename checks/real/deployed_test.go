package real

import (
	"strings"
	"testing"
)

func TestWithValues(t *testing.T) {
	for _, test := range []struct{ file, key, value, want string }{
		{"statsd/config.js", "port", "1", "\n  port: 1,\n"},
		{"graphite/carbon.conf", "USER", "", "\nUSER = \n"},
		{"graphite/local_settings.py", "CARBONLINK_HOSTS", `["h:1"]`, "\nCARBONLINK_HOSTS = [\"h:1\"]\n"},
		{"graphite/gunicorn.conf.py", "bind", "$1", "\nbind = $1\n"},
	} {
		text := ReadDeployed(t, test.file)
		got, err := withValues(text, map[string]string{test.key: test.value})
		if err != nil || !strings.Contains(got, test.want) {
			t.Errorf("%s with another %s has no %q: %v", test.file, test.key, test.want, err)
		}
		if _, err := withValues(text, map[string]string{"moon": "1"}); err == nil || !strings.Contains(err.Error(), "sets moon 0 times") {
			t.Errorf("a key that %s does not set: %v", test.file, err)
		}
	}
}
