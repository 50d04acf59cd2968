package limitertest

import (
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
)

// line is a promise of the checklist. It comes from five articles and the issue trackers of other
// limiters, which show common mistakes.
type line struct {
	id    string // "A1", "A2 bug" or "failure mode", with a number if there are several
	text  string
	tests []string // "directory Test" or "directory Test/a case or another string of it"
}

// allLines lists the ids that the checklist must cover: the sections, their bugs and the failure
// modes, in the checklist's order.
var allLines = []string{
	"A1", "A2", "A2 bug 1", "A2 bug 2", "A3", "A3 bug 1", "A3 bug 2", "A4", "A5", "A6", "A7", "A8",
	"B1", "B2", "B3", "B4", "B4 bug", "B5", "B6", "B6 bug", "B7", "B7 bug", "B8", "B8 bug 1", "B8 bug 2", "B9",
	"C1", "C1 bug", "C2",
	"D1", "D1 bug 1", "D1 bug 2", "D1 bug 3", "D2", "D2 bug 1", "D2 bug 2", "D3", "D3 bug",
	"E1", "E2", "E3", "E4", "E4 bug", "E5",
	"F1", "F2", "F2 bug 1", "F2 bug 2", "F3", "F4", "F5", "F5 bug 1", "F5 bug 2", "F5 bug 3", "F5 bug 4", "F5 bug 5", "F6", "F7", "F8", "F9",
	"G1", "G2", "G3", "G4", "G5", "G6", "G7", "G8", "G9", "G10", "G11", "G12",
	"failure mode 1", "failure mode 2", "failure mode 3", "failure mode 4", "failure mode 5", "failure mode 6", "failure mode 7",
	"failure mode 8", "failure mode 9", "failure mode 10", "failure mode 11", "failure mode 12", "failure mode 13", "failure mode 14",
	"failure mode 15", "failure mode 16", "failure mode 17",
}

// suite is the prefix of this package's named cases: those of TestBackend, TestPermits and
// TestSemaphore.
const suite = "limiter/limitertest "

// caseNames returns the names of all cases.
func caseNames() (names []string) {
	for _, c := range cases {
		names = append(names, c.name)
	}
	for _, c := range permitCases {
		names = append(names, c.name)
	}
	for _, c := range semaphoreCases {
		names = append(names, c.name)
	}
	return names
}

// caseOf matches the ids at the start of a case's name: "A3, B5: …", "B6 bug: …".
var caseOf = regexp.MustCompile(`^((?:[A-G][0-9]*(?:, )?)+|failure mode)( bug)?: `)

func TestChecklistIsComplete(t *testing.T) {
	told := map[string]bool{}
	for _, name := range caseNames() {
		if m := caseOf.FindStringSubmatch(name); m != nil && m[2] == "" {
			for _, id := range strings.Split(m[1], ", ") {
				told[id] = true
			}
		}
	}
	var ids []string
	for _, l := range checklist {
		ids = append(ids, l.id)
		if len(l.tests) == 0 && !told[l.id] {
			t.Errorf("%s (%s): no test is named, and no case begins with it", l.id, l.text)
		}
	}
	if !slices.Equal(ids, allLines) {
		t.Errorf("the table tells of\n%q, want\n%q", ids, allLines)
	}
}

// TestChecklistTestsExist checks that the tests named in the table exist.
func TestChecklistTestsExist(t *testing.T) {
	named := map[string]bool{}
	for _, name := range caseNames() {
		named[name] = true
	}
	for _, p := range properties {
		named[p.name] = true
	}
	packages := map[string]testFiles{}
	for _, l := range checklist {
		for _, where := range l.tests {
			if name, ok := strings.CutPrefix(where, suite); ok {
				if !named[name] {
					t.Errorf("%s: the suite has no case %q", l.id, name)
				}
				continue
			}
			dir, test, _ := strings.Cut(where, " ")
			if packages[dir] == nil {
				packages[dir] = readTests(t, dir)
			}
			name, inner, isInner := strings.Cut(test, "/")
			if text, ok := packages[dir][name]; !ok || isInner && !slices.Contains(text, inner) {
				t.Errorf("%s: %s has no test %s", l.id, dir, test)
			}
		}
	}
}

// Each case whose name begins with an id counts for a line of the checklist, through that id or by
// being listed.
func TestCasesAreInTheChecklist(t *testing.T) {
	known := map[string]bool{}
	for _, l := range checklist {
		known[l.id] = true
		for _, where := range l.tests {
			known[where] = true
		}
	}
	for _, name := range caseNames() {
		m := caseOf.FindStringSubmatch(name)
		if m == nil || known[suite+name] {
			continue
		}
		for _, id := range strings.Split(m[1], ", ") {
			if id != "G" && id != "E" && (m[2] != "" || !known[id]) || id == "G" && m[1] == "G" {
				t.Errorf("case %q is not in the table", name)
			}
		}
	}
}

// testFiles holds the test functions of a directory, each with the strings of its files. The names
// of its cases are among them.
type testFiles map[string][]string

func readTests(t *testing.T, dir string) testFiles {
	t.Helper()
	found := testFiles{}
	root := filepath.Join("..", "..", filepath.FromSlash(dir))
	names, err := filepath.Glob(filepath.Join(root, "*_test.go"))
	if err != nil || len(names) == 0 {
		if _, err := os.Stat(root); os.IsNotExist(err) {
			t.Errorf("%s: %v", dir, fs.ErrNotExist)
		}
		return found
	}
	for _, name := range names {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		ast.Inspect(f, func(n ast.Node) bool {
			if x, ok := n.(*ast.BasicLit); ok && x.Kind == token.STRING {
				if text, err := strconv.Unquote(x.Value); err == nil {
					texts = append(texts, text)
				}
			}
			return true
		})
		for _, d := range f.Decls {
			if x, ok := d.(*ast.FuncDecl); ok && x.Recv == nil && (strings.HasPrefix(x.Name.Name, "Test") || strings.HasPrefix(x.Name.Name, "Fuzz") || strings.HasPrefix(x.Name.Name, "Example")) {
				found[x.Name.Name] = texts
			}
		}
	}
	return found
}
