package config

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

const reference = "../docs/RULES.md"

// The examples of the reference, and of what it leads to, are good. One that is no
// whole file is a list of rules.
func TestReferenceExamples(t *testing.T) {
	for path, least := range map[string]int{reference: 5, "../docs/KAFKA.md": 2, "../docs/REDIS.md": 0, "../docs/LIMITS.md": 3, "../docs/SECURITY.md": 1} {
		testExamples(t, path, least)
	}
}

func testExamples(t *testing.T, path string, least int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatchIndex(string(text), -1)
	if len(blocks) < least || len(blocks) != strings.Count(string(text), "```yaml") {
		t.Fatalf("%s: %d blocks are found", path, len(blocks))
	}
	for _, at := range blocks {
		source := string(text[at[2]:at[3]])
		if strings.HasPrefix(source, "- ") {
			source = "rules:\n" + source
		}
		line := 1 + strings.Count(string(text[:at[0]]), "\n")
		f, err := Parse(fmt.Sprintf("%s:%d", path, line), []byte(source))
		if err != nil {
			t.Error(err)
		} else if err := f.Rules.Validate(); err != nil {
			t.Errorf("%s:%d: %v", path, line, err)
		}
	}
}

// The reference names every field.
func TestReferenceNamesAllFields(t *testing.T) {
	text, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []section{topSection, secretsSection, clientSection, aggregatorSection, redisSection, statsdSection, kafkaSection, saslSection, graphiteSection, {name: "tls", fields: tlsFields}, ruleSection, matchSection, hotSection, limitSection, prioritySection, serveSection, exceptSection} {
		for _, field := range s.fields {
			if !strings.Contains(string(text), "`"+field+"`") {
				t.Errorf("%s: the field %s of %s is missing", reference, field, s.name)
			}
		}
	}
}
