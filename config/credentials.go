package config

import (
	"regexp"

	"github.com/hotparam/hotparam/kafka"
)

// refusedFields are fields that a file must not have, wherever they stand or with their
// section.
var refusedFields = map[string]struct{ what, hint string }{
	"password":          {"a password", noPassword},
	"sentinel_password": {"a password", noPassword},
	"token":             {"a token", noToken},
	"aggregator.key":    {"a key", noKey},
	"webhook.secret":    {"a secret", noSecret},
	"page_token":        {"a token", noPageToken},
}

const (
	noPassword  = "this file is shared and kept in version control: name a file that holds the password in password_file, or a variable in password_env"
	noKey       = "this file is shared and kept in version control: name a file that holds the key in key_file, or a variable in key_env"
	noPageToken = "this file is shared and kept in version control: name a file that holds the token in page_token_file, or a variable in page_token_env"
	noSecret    = "this file is shared and kept in version control: name a file that holds the secret in secret_file, or a variable in secret_env"
	noToken     = "this file is shared and kept in version control: name a file that holds the token in token_file, or a variable in token_env"
)

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// password reads where a password, a token or a key is: a file or a variable.
func (d *decoder) password(v values, prefix, name string) (file, env string) {
	atFile, atEnv := v.get(name+"_file"), v.get(name+"_env")
	file, env = d.word(atFile, prefix+name+"_file"), d.word(atEnv, prefix+name+"_env")
	if env != "" && !variable.MatchString(env) {
		d.report(atEnv.at, "the name of a variable, not what it holds: for example REDIS_PASSWORD", "%s%s_env is no name of a variable", prefix, name)
	}
	if atFile != nil && atEnv != nil {
		d.report(atEnv.at, "keep one of them", "%s%s_file and %s_env are both there", prefix, name, name)
	}
	return file, env
}

// tlsFields are the fields of TLS, wherever they stand.
var tlsFields = []string{"ca", "cert", "key", "server_name", "insecure"}

// tls reads TLS that is a section of its own.
func (d *decoder) tls(n *node, what string) *kafka.TLS {
	s := section{name: what, prefix: what + ".", fields: tlsFields, example: "for example tls: {ca: ca.pem}"}
	t := d.tlsFiles(d.section(n, s), s.prefix)
	return &t
}

// tlsFiles reads the fields of TLS.
func (d *decoder) tlsFiles(v values, prefix string) kafka.TLS {
	t := kafka.TLS{
		CA:         d.word(v.get("ca"), prefix+"ca"),
		Cert:       d.word(v.get("cert"), prefix+"cert"),
		Key:        d.word(v.get("key"), prefix+"key"),
		ServerName: d.word(v.get("server_name"), prefix+"server_name"),
		Insecure:   d.flag(v.get("insecure"), prefix+"insecure"),
	}
	for _, pair := range [][2]string{{"cert", "key"}, {"key", "cert"}} {
		if one, other := v.get(pair[0]), v.has(pair[1]); one != nil && !other {
			d.report(one.at, "a certificate of our own is two PEM files, cert and key", "%s%s is there without %s", prefix, pair[0], pair[1])
		}
	}
	if n := v.get("insecure"); t.Insecure && v.has("ca") {
		d.reject(n, "remove ca, or better insecure", "%sinsecure takes any certificate, so ca has no effect", prefix)
	}
	return t
}

// word reads text that is not empty.
func (d *decoder) word(n *node, what string) string {
	s, ok := d.scalar(n, what)
	if ok && s == "" {
		d.reject(n, "give it a value or remove it", "%s is empty", what)
	}
	return s
}

// flag reads true or false.
func (d *decoder) flag(n *node, what string) bool {
	s, _ := d.choice(n, what, "true", "false")
	return s == "true"
}
