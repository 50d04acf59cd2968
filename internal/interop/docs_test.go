package interop

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var codeBlock = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")

// blocks are the document's blocks of code in a language.
func blocks(t *testing.T, language string) (found []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "PRODUCERS.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range codeBlock.FindAllSubmatch(text, -1) {
		if string(match[1]) == language {
			found = append(found, string(match[2]))
		}
	}
	if len(found) == 0 {
		t.Fatalf("no %s in docs/PRODUCERS.md", language)
	}
	return found
}

// What the document shows is what the tests run.
func TestDocumentShowsTheExamples(t *testing.T) {
	for language, pattern := range map[string]string{"java": "*.java", "python": "*.py"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "examples", "producers", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no examples %s (%v)", pattern, err)
		}
		var programs []string
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			programs = append(programs, string(text))
		}
		shown := blocks(t, language)
		for _, block := range shown {
			if !anyHas(programs, block) {
				t.Errorf("no program in examples/producers has these lines of docs/PRODUCERS.md:\n%s", block)
			}
		}
		for i, program := range programs {
			_, lines, _ := strings.Cut(program, "roducer = ")
			lines, _, _ = strings.Cut(lines, "\n")
			if !anyHas(shown, lines) {
				t.Errorf("docs/PRODUCERS.md does not show %s", files[i])
			}
		}
	}
}

// anyHas tells whether one of the texts has the lines, indented or not.
func anyHas(texts []string, lines string) bool {
	for _, text := range texts {
		if strings.Contains(unindented(text), unindented(lines)) {
			return true
		}
	}
	return false
}

var indent = regexp.MustCompile(`(?m)^[ \t]+`)

func unindented(text string) string { return indent.ReplaceAllString(text, "") }
