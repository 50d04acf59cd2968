package config

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// Redis holds the settings to reach the Redis with the hot set: a URL alone, or fields. The
// fields are those of hotkeys.ClientConfig, which it converts to.
type Redis struct {
	// URL is redis://, rediss:// or unix://, with all options that go-redis reads from a
	// URL.
	URL string
	// Username and the password, in a file or a variable, take precedence over the URL's.
	Username, PasswordFile, PasswordEnv string
	// The sentinel fields are the same for the sentinels.
	SentinelUsername, SentinelPasswordFile, SentinelPasswordEnv string
	// CA, Cert and Key are PEM files for TLS. ServerName is the name in the server's
	// certificate, if it differs from the host.
	CA, Cert, Key, ServerName string
	// Insecure accepts any certificate.
	Insecure bool
}

const defaultRedis = "redis://127.0.0.1:6379/0"

func (r *Redis) settings() settings {
	return append(settings{
		{"url", r.urlValue(), defaultRedis, ""},
		{"username", word(&r.Username), "", ""},
		{"password_file", word(&r.PasswordFile), "", ""},
		{"password_env", variable(&r.PasswordEnv), "", ""},
		{"sentinel_username", word(&r.SentinelUsername), "", ""},
		{"sentinel_password_file", word(&r.SentinelPasswordFile), "", ""},
		{"sentinel_password_env", variable(&r.SentinelPasswordEnv), "", ""},
	}, tlsSettings(&r.CA, &r.Cert, &r.Key, &r.ServerName, &r.Insecure)...)
}

// value returns the value for a URL, or for fields that include the URL.
func (r *Redis) value() fieldBinding {
	const example = "for example redis: redis://127.0.0.1:6379/0, or redis: {url: rediss://redis.example:6380/0, username: hotparam, password_file: redis.password}"
	v := within(r, r.settings(), example)
	v = v.shownAs(anyOf(schemaRedisURL, v.form))
	v.read = func(d *decoder, n *fileNode, what string) {
		if n.kind == scalarKind {
			r.urlValue().read(d, n, what)
			return
		}
		d.agreeTLS(d.settings(n, what, example, r.settings()), what, r.Insecure)
	}
	return v
}

func schemaRedisURL() schema {
	return schema{"type": "string", "pattern": "^([rR][eE][dD][iI][sS][sS]?|[uU][nN][iI][xX]):"}
}

func (r *Redis) urlValue() fieldBinding {
	return unshownURL(&r.URL, schemaRedisURL, "for example redis://host:6379/0; docs/REDIS.md has the forms for Sentinel and Cluster", checkRedisURL)
}

func checkRedisURL(s string) error {
	if !validRedis(s) {
		return errors.New("want a URL that begins with redis://, rediss:// or unix://")
	}
	return nil
}

func validRedis(s string) bool {
	u, err := url.Parse(s)
	if err != nil {
		return false
	}
	switch u.Scheme {
	case "redis", "rediss":
		db := strings.Trim(u.Path, "/")
		_, err := strconv.ParseUint(db, 10, 16)
		return u.Host != "" && (db == "" || err == nil)
	case "unix":
		return u.Path != ""
	}
	return false
}
