package interop

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

var codeBlock = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")

// blocks returns the document's code blocks in a language.
func blocks(t *testing.T, language string) (found []string) {
	t.Helper()
	text := testenv.ReadFile(t, filepath.Join("..", "..", "docs", "PRODUCERS.md"))
	for _, match := range codeBlock.FindAllStringSubmatch(text, -1) {
		if match[1] == language {
			found = append(found, match[2])
		}
	}
	if len(found) == 0 {
		t.Fatalf("no %s in docs/PRODUCERS.md", language)
	}
	return found
}

// The document shows code that the tests run: each block is part of a program, and each program
// has a block that no other has.
func TestDocumentShowsTheExamples(t *testing.T) {
	programs := make(map[string]string)
	err := fs.WalkDir(os.DirFS(example("")), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(example(path))
		programs[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	shown := make(map[string]bool)
	for _, language := range []string{"java", "js", "python", "sh", "bash"} {
		for _, block := range blocks(t, language) {
			in := having(programs, block)
			if len(in) == 0 {
				t.Errorf("no program in examples/producers has these lines of docs/PRODUCERS.md:\n%s", block)
			}
			if len(in) == 1 {
				shown[in[0]] = true
			}
		}
	}
	for path := range programs {
		if !shown[path] {
			t.Errorf("docs/PRODUCERS.md does not show %s", path)
		}
	}
}

// having returns the programs that contain the lines, indented or not.
func having(programs map[string]string, lines string) (paths []string) {
	for path, text := range programs {
		if strings.Contains(unindented(text), unindented(lines)) {
			paths = append(paths, path)
		}
	}
	return paths
}

var indent = regexp.MustCompile(`(?m)^[ \t]+`)

func unindented(text string) string { return indent.ReplaceAllString(text, "") }
