package main

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// Links within the repository point to an existing file, and to an existing heading in it.
func TestDocumentsLinkToWhatIsThere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	texts := documents(t)
	n := 0
	for from, text := range texts {
		for _, at := range link.FindAllStringSubmatchIndex(text, -1) {
			to := text[at[2]:at[3]]
			if strings.Contains(to, "://") {
				continue
			}
			n++
			line := 1 + strings.Count(text[:at[0]], "\n")
			file, anchor, _ := strings.Cut(to, "#")
			target := from
			if file != "" {
				target = path.Join(path.Dir(from), file)
			}
			if _, err := os.Stat(filepath.Join(repository, target)); err != nil {
				t.Errorf("%s:%d: %s: there is no %s", from, line, to, target)
			} else if anchor != "" && !anchors(texts[target])[anchor] {
				t.Errorf("%s:%d: %s: no such heading", from, line, to)
			}
		}
	}
	if n < 50 {
		t.Errorf("%d links", n)
	}
}

// anchors returns the anchors of a document's headings, as GitHub makes them.
func anchors(text string) map[string]bool {
	found := make(map[string]bool)
	for _, heading := range regexp.MustCompile(`(?m)^#+ +(.*)$`).FindAllStringSubmatch(text, -1) {
		found[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, heading[1])] = true
	}
	return found
}
