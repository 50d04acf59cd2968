package hotparam_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var quotedFile = regexp.MustCompile("`([a-z0-9_*/.-]+\\.go)`")

// A package's doc.go lists exactly its files, and docs/DESIGN.md names every top-level folder.
// Packages of a few files, and commands, whose files have the commands' names, need no list.
func TestLayoutIsAsDocumented(t *testing.T) {
	design, err := os.ReadFile("docs/DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range listPackages(t) {
		folder := p.name()
		if folder == "hotparam" {
			folder = "."
		}
		if room, _, _ := strings.Cut(folder, "/"); room != "." && !strings.Contains(string(design), "`"+room) {
			t.Errorf("docs/DESIGN.md does not name the room %s", room)
		}
		doc, err := os.ReadFile(filepath.Join(folder, "doc.go"))
		if err != nil {
			continue
		}
		place := folder + "/doc.go"
		named := existing(t, place, folder, regexp.MustCompile(`\b([a-z0-9_*]+\.go)\b`).FindAllStringSubmatch(string(doc), -1))
		for _, file := range sources(t, folder) {
			if len(named) > 0 && !slices.Contains(named, file) && file != "doc.go" {
				t.Errorf("%s does not list %s", place, file)
			}
		}
	}
	text, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	if named := existing(t, "CONTRIBUTING.md", ".", quotedFile.FindAllStringSubmatch(string(text), -1)); len(named) < 10 {
		t.Errorf("CONTRIBUTING.md names %q", named)
	}
}

// existing returns the files of a folder that a place names, and reports names without a file.
func existing(t *testing.T, place, folder string, named [][]string) (files []string) {
	t.Helper()
	for _, match := range named {
		found, err := filepath.Glob(filepath.Join(folder, match[1]))
		if err != nil || len(found) == 0 {
			t.Errorf("%s names %s/%s, which does not exist", place, folder, match[1])
		}
		for _, file := range found {
			rel, _ := filepath.Rel(folder, file)
			files = append(files, rel)
		}
	}
	return files
}

// sources returns the files of a package except its tests.
func sources(t *testing.T, folder string) (files []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range found {
		if !strings.HasSuffix(file, "_test.go") {
			files = append(files, filepath.Base(file))
		}
	}
	return files
}
