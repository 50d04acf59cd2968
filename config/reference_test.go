package config

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const reference = "../docs/RULES.md"

// The reference names every field, and each setting with its default.
func TestReferenceNamesAllFields(t *testing.T) {
	text, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	schemaFields(Schema(), "", func(path string, _ schema) {
		field := path[strings.LastIndexByte(path, '.')+1:]
		if !strings.Contains(string(text), "`"+field+"`") {
			t.Errorf("%s: the field %s is missing", reference, path)
		}
	})
	var defaults func(all settings, section string)
	defaults = func(all settings, section string) {
		for _, s := range all {
			row := func(name string) bool {
				return strings.Contains(string(text), fmt.Sprintf("| `%s` | `%s` |", name, s.byDefault))
			}
			if s.byDefault != "" && !row(s.name) && !row(section) { // redis is its url
				t.Errorf("%s: no row says that %s is %s by default", reference, s.name, s.byDefault)
			}
			defaults(s.value.inner, s.name)
		}
	}
	for _, all := range []settings{new(Aggregator).settings(), new(StatsD).settings(), new(Kafka).settings(), new(Graphite).settings(), new(Webhook).settings(), new(Guard).settings()} {
		defaults(all, "")
	}
}
