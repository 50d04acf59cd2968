package messages

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

var update = flag.Bool("update", false, "write messages.txt")

const (
	root   = "../.."
	golden = "messages.txt"
)

// leftOut has the folders without texts of the product.
var leftOut = []string{"adapters", "benchmarks", "bin", "checks", "examples", "internal/testenv", "internal/kafkafake"}

// prose matches a text with at least two words.
var prose = regexp.MustCompile(`[A-Za-z][a-z]+[,.:;]? [a-z(%"]`)

// TestTexts holds messages.txt against the code.
func TestTexts(t *testing.T) {
	got := strings.Join(texts(t), "\n") + "\n"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want := testenv.ReadFile(t, golden)
	known := strings.Split(want, "\n")
	for _, line := range strings.Split(got, "\n") {
		if !slices.Contains(known, line) {
			t.Errorf("not in %s: %s", golden, line)
		}
	}
	if got != want {
		t.Errorf("%s is not up to date: run go test ./checks/messages -update", golden)
	}
}

// texts returns a heading for each package, followed by its texts in the order of the code.
func texts(t *testing.T) (lines []string) {
	folder := ""
	add := func(name, text string) {
		if !prose.MatchString(text) {
			return
		}
		if dir := filepath.ToSlash(filepath.Dir(name)); dir != folder {
			folder = dir
			lines = append(lines, "", "# "+dir)
		}
		lines = append(lines, strings.ReplaceAll(strings.TrimSpace(text), "\n", " ⏎ "))
	}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if d.IsDir() {
			base := filepath.Base(rel)
			if slices.Contains(leftOut, filepath.ToSlash(rel)) || base == "testdata" || base == "limitertest" || base == "middlewaretest" || strings.HasPrefix(base, ".") && rel != "." {
				return fs.SkipDir
			}
			return nil
		}
		switch {
		case strings.HasSuffix(rel, "_test.go"):
		case strings.HasSuffix(rel, ".go"):
			return ofGo(name, func(text string) { add(rel, text) })
		case strings.HasSuffix(rel, ".js"):
			return ofScript(name, func(text string) { add(rel, text) })
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// ofGo calls f with each string of a Go file, and once with a concatenation of strings.
func ofGo(name string, f func(text string)) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			n.Tag = nil
		case ast.Expr:
			if text, ok := constant(n); ok {
				f(text)
				return false
			}
		}
		return true
	})
	return nil
}

// constant returns the value of a string or of a concatenation of strings.
func constant(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		x, ok := constant(e.X)
		y, alsoOK := constant(e.Y)
		return x + y, ok && alsoOK && e.Op == token.ADD
	}
	return "", false
}

// scriptText matches a string of a script.
var scriptText = regexp.MustCompile("\"[^\"\n]+\"|`[^`\n]+`")

// class matches the class of an element, which users do not see.
var class = regexp.MustCompile("\\bclass: (?:`[^`\n]*`|[^,}`\n]*)")

// ofScript calls f with each string of a script, but not with the classes of elements.
func ofScript(name string, f func(text string)) error {
	script, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	for _, text := range scriptText.FindAllString(class.ReplaceAllString(string(script), ""), -1) {
		f(strings.Trim(text, "\"`"))
	}
	return nil
}
