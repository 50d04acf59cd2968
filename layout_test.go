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

// The file map in docs/DESIGN.md, the package comments and CONTRIBUTING.md name the files
// that there are. A package whose files are listed there is listed whole.
func TestLayoutIsAsDocumented(t *testing.T) {
	text, err := os.ReadFile("docs/DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	_, fileMap, _ := strings.Cut(string(text), "\n## File map\n")
	fileMap, _, _ = strings.Cut(fileMap, "\n## ")
	rows := 0
	for line := range strings.Lines(fileMap) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !quotedFile.MatchString(cells[2]) {
			continue
		}
		rows++
		folder := "." // of the row of the root
		if name, _, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(cells[1]), "`"), "`"); ok {
			folder = name
		}
		named := existing(t, "docs/DESIGN.md", folder, quotedFile.FindAllStringSubmatch(cells[2], -1))
		if strings.HasPrefix(folder, "internal/") || strings.HasPrefix(folder, "checks/") || folder == "limiter/limitertest" {
			continue // by their beginnings
		}
		for _, file := range sources(t, folder) {
			if !slices.Contains(named, file) && file != "doc.go" {
				t.Errorf("docs/DESIGN.md: the file map does not name %s/%s", folder, file)
			}
		}
	}
	if rows < 15 {
		t.Errorf("the file map has %d rows with files", rows)
	}
	for _, p := range listPackages(t) {
		folder := p.name()
		if folder == "hotparam" {
			folder = "."
		}
		if doc, err := os.ReadFile(filepath.Join(folder, "doc.go")); err == nil {
			existing(t, folder+"/doc.go", folder, regexp.MustCompile(`\b([a-z0-9_]+\.go)\b`).FindAllStringSubmatch(string(doc), -1))
		}
	}
	text, err = os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	if named := existing(t, "CONTRIBUTING.md", ".", quotedFile.FindAllStringSubmatch(string(text), -1)); len(named) < 10 {
		t.Errorf("CONTRIBUTING.md names %q", named)
	}
}

// existing returns the files of a folder that are named in a place, and reports those
// that do not exist.
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

// sources returns the files of a package but its tests.
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
