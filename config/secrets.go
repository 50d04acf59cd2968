package config

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// KeyPlace is the place of a key: a file, or an environment variable. At most one of them is
// set.
type KeyPlace struct{ File, Env string }

// secretSettings are the fields of the section secrets.
type secretSettings struct {
	extra, except []string
	redact        []rules.Param
	key           KeyPlace // place of the key of redact
}

func (s *secretSettings) settings() settings {
	return settings{
		{"extra", as(&s.extra, schemaList(schemaWord), (*decoder).names), "", "Further parameters that look secret and make no keys"},
		{"except", as(&s.except, schemaList(schemaWord), (*decoder).names), "", "Parameters that look secret and make keys all the same"},
		{"redact", as(&s.redact, schemaSome(schemaWord), (*decoder).redacted), "", "Parameters that make keys with a hash in place of the value"},
		{"redact_key_file", word(&s.key.File), "", "File with the key of redact: openssl rand -hex 32"},
		{"redact_key_env", variable(&s.key.Env), "", "Variable with the key of redact"},
	}
}

// secrets reads the parameters that make no keys, and the ones whose values are redacted in
// keys. It returns the place of the key that redacts.
func (d *decoder) secrets(n *fileNode, what string, ruleset *rules.Rules) KeyPlace {
	var s secretSettings
	v := d.settings(n, what, "for example secrets: {extra: [pin], except: [token]}", s.settings())
	if v == nil {
		return s.key
	}
	ruleset.Secrets = rules.NewSecrets(s.extra, s.except)
	ruleset.Redact.Names = s.redact
	named := v.has("redact_key_file") || v.has("redact_key_env")
	key := cmp.Or(v.get("redact_key_file"), v.get("redact_key_env"))
	switch n := v.get("redact"); {
	case n != nil && len(s.redact) == 0 && !n.anyBad():
		d.reject(n, "name at least one parameter, or remove it", "secrets.redact: the list is empty")
	case n != nil && !named:
		d.report(n.pos, "make one by openssl rand -hex 32, and name its file in redact_key_file, or a variable that holds it in redact_key_env", "secrets.redact without a key")
	case !v.has("redact") && key != nil:
		d.report(key.pos, "add redact: with the parameters whose values shall not leave the process, or remove it", "secrets has a key and no redact")
	}
	return s.key
}

// redacted reads the names of secrets.redact.
func (d *decoder) redacted(n *fileNode, what string) []rules.Param {
	return d.params(d.list(n, what), what, rules.Route{}) // an empty route allows any wildcard
}

// ReadRedactKey reads the key that redacts values into f.Rules.Redact. Programs that make keys
// from requests need it: instances, but not aggregators. Without secrets.redact it does nothing.
func (f *File) ReadRedactKey() error {
	if len(f.Rules.Redact.Names) == 0 {
		return nil
	}
	key, err := base.ReadSecret(f.RedactKey.File, f.RedactKey.Env)
	if err != nil {
		return fmt.Errorf("secrets.redact_key: %w", err)
	}
	f.Rules.Redact.Key = []byte(key)
	if _, err := rules.NewRedaction(f.Rules.Redact); err != nil {
		f.Rules.Redact.Key = nil
		return err
	}
	return nil
}

// names reads a list of names.
func (d *decoder) names(n *fileNode, what string) []string {
	var names []string
	for _, item := range d.list(n, what) {
		name, ok := d.scalar(item, what)
		switch {
		case !ok:
		case name == "":
			d.reject(item, "give a name or remove it", "%s: a name is empty", what)
		case strings.ContainsAny(name, ".[]"):
			d.reject(item, "names are compared part by part: give the part alone, such as pin for user[pin]",
				"%s: %q has parts", what, name)
		default:
			names = append(names, name)
		}
	}
	return names
}
