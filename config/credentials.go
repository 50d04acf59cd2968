package config

import "github.com/hotparam/hotparam/kafka"

// refusedFields are fields that a file must not have, anywhere or with their section's prefix, and what
// they would hold.
var refusedFields = map[string]string{
	"password": "password", "sentinel_password": "password", "token": "token", "page_token": "token",
	"aggregator.key": "key", "webhook.secret": "secret",
}

// tlsSettings returns the fields of TLS in any section.
func tlsSettings(ca, cert, key, serverName *string, insecure *bool) settings {
	return settings{
		{"ca", word(ca), "", "File of the authorities, PEM"},
		{"cert", word(cert), "", "File of a client certificate, PEM"},
		{"key", word(key), "", "File of its key, PEM"},
		{"server_name", word(serverName), "", "Name that the server's certificate must have"},
		{"insecure", flag(insecure), "", "Accept any certificate"},
	}
}

// settingsOf returns the fields of t.
func settingsOf(t *kafka.TLS) settings {
	return tlsSettings(&t.CA, &t.Cert, &t.Key, &t.ServerName, &t.Insecure)
}

// tls reads a section with the fields of TLS.
func (d *decoder) tls(n *fileNode, what string) *kafka.TLS {
	t := new(kafka.TLS)
	d.agreeTLS(d.settings(n, what, "for example tls: {ca: ca.pem}", settingsOf(t)), what, t.Insecure)
	return t
}

// agreeTLS reports contradictory fields of TLS in a section.
func (d *decoder) agreeTLS(v values, what string, insecure bool) {
	for _, pair := range [][2]string{{"cert", "key"}, {"key", "cert"}} {
		if one := v.get(pair[0]); one != nil && !v.has(pair[1]) {
			d.report(one.pos, "a client certificate is two PEM files, cert and key", "%s.%s is there without %s", what, pair[0], pair[1])
		}
	}
	if n := v.get("insecure"); insecure && v.has("ca") {
		d.reject(n, "remove insecure, or else ca", "%s.insecure takes any certificate, so ca has no effect", what)
	}
}

// word reads text that is not empty.
func (d *decoder) word(n *fileNode, what string) string {
	s, ok := d.scalar(n, what)
	if ok && s == "" {
		d.reject(n, "give it a value or remove it", "%s is empty", what)
	}
	return s
}
