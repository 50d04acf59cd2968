package mutants

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/checks/overlay"
	"github.com/hotparam/hotparam/internal/testenv"
)

// Each fault's text is in the source, and so are its tests. A fault that changes nothing, or that
// no test looks for, would never be found.
func TestFaultsAreWhereTheySay(t *testing.T) {
	root, err := overlay.Root()
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, f := range Faults() {
		if names[f.Name] {
			t.Errorf("%s: there are two", f.Name)
		}
		names[f.Name] = true
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f.File)))
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		if n := bytes.Count(text, []byte(f.Old)); n != 1 || f.Old == f.New {
			t.Errorf("%s: %s has %d times, want once:\n%s", f.Name, f.File, n, f.Old)
		}
		tests := testsOf(t, filepath.Join(root, filepath.FromSlash(f.pkg())))
		for name := range strings.SplitSeq(f.Test, "|") {
			if !tests[name] {
				t.Errorf("%s: package %s has no test %q", f.Name, f.pkg(), name)
			}
		}
	}
	if len(names) < 30 {
		t.Errorf("%d faults", len(names))
	}
}

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

func testsOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	tests := make(map[string]bool)
	for _, file := range files {
		text := testenv.ReadFile(t, file)
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
	}
	return tests
}

// The checks find a few of the faults here, in packages that compile quickly. `make mutants`
// plants all of them.
func TestFaultsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("each fault is a build of its own")
	}
	some := map[string]bool{
		"the sample rate is ignored": true, "high without what cells hide": true, "a gap is not noticed": true,
	}
	r, err := NewRunner()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range Faults() {
		if !some[f.Name] {
			continue
		}
		n++
		o, err := r.Run(t.Context(), f)
		if err != nil {
			t.Error(err)
		} else if len(o.FoundBy) == 0 {
			t.Errorf("%s survives %s", f.Name, f.Test)
		}
	}
	if n != len(some) {
		t.Errorf("%d faults were tested, want %d", n, len(some))
	}
}

// A run that does not prove that a check finds a fault is distinguished from one that does.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("each fault is a build of its own")
	}
	const file, old = "checks/overlay/overlay.go", `n != 1 {`
	r, err := NewRunner()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		fault Fault
		found bool
		err   string
	}{
		{"found", Fault{File: file, Old: old, New: `n > 100 {`, Test: "TestWrite"}, true, ""},
		{"survives", Fault{File: file, Old: old, New: `n != 1 && n < 100 {`, Test: "TestWrite"}, false, ""},
		{"does not compile", Fault{File: file, Old: old, New: `n != "1" {`, Test: "TestWrite"}, false, "does not compile"},
		{"leaves a variable unused", Fault{File: file, Old: old, New: `true {`, Test: "TestWrite"}, true, ""},
		{"the text is gone", Fault{File: file, Old: "no such text", New: "", Test: "TestWrite"}, false, "want once"},
		{"no such test", Fault{File: file, Old: old, New: `n > 100 {`, Test: "TestNothing"}, false, "has no test"},
		{"ends the tests", Fault{File: file, Old: old, New: "n != 7 { os.Exit(3)", Test: "TestWrite"}, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, err := r.Run(t.Context(), c.fault)
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("error %v, want %q", err, c.err)
			}
			if found := len(o.FoundBy) > 0; found != c.found {
				t.Errorf("found by %v", o.FoundBy)
			}
		})
	}
}

// Subtests count as their test, and a failure to compile is no failure of a test.
func TestReadEvents(t *testing.T) {
	r, err := readEvents([]byte(`{"Action":"start"}
{"Action":"run","Test":"TestB"}
{"Action":"run","Test":"TestC"}
{"Action":"run","Test":"TestA"}
{"Action":"run","Test":"TestA/x"}
{"Action":"fail","Test":"TestA/x"}
{"Action":"fail","Test":"TestA"}
{"Action":"pass","Test":"TestB"}
FAIL
{"Action":"fail"}
`))
	if err != nil || !r.ran || strings.Join(r.failed, " ") != "TestA" || strings.Join(r.unfinished, " ") != "TestC" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := readEvents([]byte(`{"Action":"build-output","Output":"x.go:1: bad\n"}
{"Action":"build-fail"}
`)); r.ran || err == nil || !strings.Contains(err.Error(), "x.go:1: bad") {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestParseFaults(t *testing.T) {
	got, err := parseFaults("# Faults in keys.\n\na key\nrules/key.go: TestA|TestB in checks/interop\n-one\n-\n+\ttwo\n\nanother\nrules/key.go: TestC\n-three\n")
	want := []Fault{
		{Name: "a key", File: "rules/key.go", Old: "one\n", New: "\ttwo", Test: "TestA|TestB", Package: "checks/interop"},
		{Name: "another", File: "rules/key.go", Old: "three", Test: "TestC"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"a key\nrules/key.go: TestA", "a key\nrules/key.go: TestA\n+two\n-one", "a key\nrules/key.go: TestA\none"} {
		if _, err := parseFaults(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
