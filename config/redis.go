package config

import (
	"net/url"
	"strconv"
	"strings"
)

// Redis is how to reach the Redis that holds the hot set: a URL alone, or
// fields. The fields are those of hotkeys.ClientConfig, which it converts to.
type Redis struct {
	// URL is redis://, rediss:// or unix://, with all that go-redis reads
	// from one.
	URL string
	// Username and the password, in a file or a variable, go before what the
	// URL says.
	Username, PasswordFile, PasswordEnv string
	// The same for the sentinels.
	SentinelUsername, SentinelPasswordFile, SentinelPasswordEnv string
	// CA, Cert and Key are PEM files for TLS; ServerName is the name in the
	// server's certificate, if it is not its host.
	CA, Cert, Key, ServerName string
	// Insecure accepts any certificate.
	Insecure bool
}

var redisSection = section{
	name: "aggregator.redis", prefix: "aggregator.redis.",
	fields: []string{
		"url", "username", "password_file", "password_env",
		"sentinel_username", "sentinel_password_file", "sentinel_password_env",
		"ca", "cert", "key", "server_name", "insecure",
	},
	example: "for example redis: redis://127.0.0.1:6379/0, or redis: {url: rediss://redis.example:6380/0, username: hotparam, password_file: redis.password}",
}

// redis reads a URL, or fields of which the URL is one.
func (d *decoder) redis(n *node) Redis {
	const what = "aggregator.redis"
	if n == nil {
		return Redis{}
	}
	if n.kind == scalarKind {
		return Redis{URL: d.redisURL(n, what)}
	}
	v := d.section(n, redisSection)
	t := d.tlsFiles(v, redisSection.prefix)
	r := Redis{
		URL: d.redisURL(v.get("url"), what+".url"),
		CA:  t.CA, Cert: t.Cert, Key: t.Key, ServerName: t.ServerName, Insecure: t.Insecure,
	}
	r.Username = d.word(v.get("username"), what+".username")
	r.SentinelUsername = d.word(v.get("sentinel_username"), what+".sentinel_username")
	r.PasswordFile, r.PasswordEnv = d.password(v, redisSection.prefix, "password")
	r.SentinelPasswordFile, r.SentinelPasswordEnv = d.password(v, redisSection.prefix, "sentinel_password")
	return r
}

func (d *decoder) redisURL(n *node, what string) string {
	s, ok := d.scalar(n, what)
	if ok && !validRedis(s) {
		// The URL is not shown: it may hold a password in a form that is not
		// known to be one.
		d.reject(n, "for example redis://host:6379/0; docs/REDIS.md has the forms for Sentinel and Cluster", "%s: want a URL that begins with redis://, rediss:// or unix://", what)
	}
	return s
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
