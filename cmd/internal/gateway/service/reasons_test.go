package service

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// inspect calls f for each node of the Go files of a folder, tests aside.
func inspect(t *testing.T, folder string, f func(ast.Node) (deeper bool)) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: no files, %v", folder, err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, f)
	}
}

// Each door declares the reasons that it counts. Others would not be counted at all.
func TestDoorsDeclareTheirReasons(t *testing.T) {
	reasons := make(map[string]bool)
	inspect(t, "..", func(n ast.Node) bool {
		if c, ok := n.(*ast.ValueSpec); ok && len(c.Names) == 1 {
			if kind, ok := c.Type.(*ast.Ident); ok && kind.Name == "Reason" {
				reasons[c.Names[0].Name] = true
			}
		}
		return true
	})
	for _, door := range []string{"auth", "check", "rls", "spoe"} {
		used, declared := make(map[string]bool), make(map[string]bool)
		collect := func(to map[string]bool) func(ast.Node) bool {
			return func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && reasons[s.Sel.Name] {
					if from, ok := s.X.(*ast.Ident); ok && from.Name == "gateway" {
						to[s.Sel.Name] = true
					}
				}
				return true
			}
		}
		inspect(t, filepath.Join("..", door), func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				switch f, _ := call.Fun.(*ast.SelectorExpr); {
				case f == nil:
				case f.Sel.Name == "NewTally" || f.Sel.Name == "NewHTTPDoor":
					ast.Inspect(call, collect(declared))
					for _, name := range []string{"Unauthorized", "TooLarge", "Unreadable", "Slow"} { // see NewHTTPDoor
						declared[name] = declared[name] || f.Sel.Name == "NewHTTPDoor"
					}
					return false
				}
			}
			return collect(used)(n)
		})
		for name := range used {
			if !declared[name] {
				t.Errorf("%s counts gateway.%s without declaring it", door, name)
			}
		}
		if len(used) == 0 || len(declared) == 0 {
			t.Errorf("%s: %d reasons are used and %d declared", door, len(used), len(declared))
		}
	}
}
