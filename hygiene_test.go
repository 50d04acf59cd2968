package hotparam_test

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

const maxFileSize = 2 << 20 // bytes

// The words are split so that this file does not match itself.
var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME)\b`)

func TestCommittedFilesAreTidy(t *testing.T) {
	for _, name := range committedFiles(t) {
		info, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted here, not yet in git
		}
		if err != nil {
			t.Fatal(err)
		}
		if !info.Mode().IsRegular() {
			continue
		}
		if info.Size() > maxFileSize {
			t.Errorf("%s has %d bytes; at most %d belong into the repository", name, info.Size(), maxFileSize)
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !utf8.Valid(text) {
			continue // not text
		}
		for _, at := range unfinished.FindAllIndex(text, -1) {
			t.Errorf("%s:%d: finish it, or open an issue", name, 1+bytes.Count(text[:at[0]], []byte("\n")))
		}
		if strings.HasSuffix(name, ".go") {
			checkDocNames(t, name, text)
		}
	}
}

var isTest = regexp.MustCompile(`^(Test|Benchmark|Fuzz|Example)`)

// docOfName matches a doc comment that begins with a name: a word that begins with a small letter or
// has a capital inside, or one before a verb of Go documentation.
var docOfName = regexp.MustCompile(`^([a-z]\w*|\w+[a-z][A-Z]\w*|\w+ (?:returns|reports|implements|records|calls|sets|adds|writes|reads)\b)`)

// checkDocNames fails if the doc comment of a function or a type begins with another name. Those of
// tests and examples are sentences.
func checkDocNames(t *testing.T, path string, text []byte) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return
	}
	check := func(doc *ast.CommentGroup, name *ast.Ident) {
		if isTest.MatchString(name.Name) {
			return
		}
		first, _, _ := strings.Cut(docOfName.FindString(doc.Text()), " ")
		if first != "" && first != name.Name {
			t.Errorf("%s: the doc comment of %s begins with %q", files.Position(name.Pos()), name.Name, first)
		}
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			check(d.Doc, d.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok && s.Doc != nil {
					check(s.Doc, s.Name)
				} else if ok && !d.Lparen.IsValid() {
					check(d.Doc, s.Name)
				}
			}
		}
	}
}

func committedFiles(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		t.Skipf("not a git checkout, or no git: cannot tell which files are committed (%v)", err)
	}
	names := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	if len(names) < 2 {
		t.Fatalf("git ls-files names %q", names)
	}
	return names
}
