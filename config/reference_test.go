package config

import (
	"os"
	"strings"
	"testing"
)

const reference = "../docs/RULES.md"

// The reference names every field.
func TestReferenceNamesAllFields(t *testing.T) {
	text, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []section{topSection, secretsSection, clientSection, bodiesSection, aggregatorSection, redisSection, statsdSection, kafkaSection, saslSection, graphiteSection, webhookSection, guardSection, authSection, {name: "tls", fields: tlsFields}, ruleSection, matchSection, hotSection, limitSection, prioritySection, serveSection, exceptSection} {
		for _, field := range s.fields {
			if !strings.Contains(string(text), "`"+field+"`") {
				t.Errorf("%s: the field %s of %s is missing", reference, field, s.name)
			}
		}
	}
}
