package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// project is a module in which everything happens that can happen to a package.
var project = map[string]string{
	"go.mod":            "module example.org/project\n\ngo 1.26\n",
	"good/good_test.go": "package good\n\nimport \"testing\"\n\nfunc TestGood(t *testing.T) { t.Run(\"sub\", func(*testing.T) {}) }\n",
	"skip/skip_test.go": "package skip\n\nimport \"testing\"\n\nfunc TestSkip(t *testing.T) { t.Skip(\"no moon tonight\") }\n",
	"bad/bad_test.go":   "package bad\n\nimport \"testing\"\n\nfunc TestBad(t *testing.T) { t.Run(\"sub\", func(t *testing.T) { t.Error(\"off by one\") }) }\n\nfunc TestFine(*testing.T) {}\n",
	"build/build.go":    "package build\n\nvar x int = \"text\"\n",
	"build/a_test.go":   "package build\n\nimport \"testing\"\n\nfunc TestNever(*testing.T) {}\n",
	"panic/p_test.go":   "package panic\n\nimport \"testing\"\n\nfunc TestPanic(*testing.T) { panic(\"lost my towel\") }\n",
	"exit/exit_test.go": "package exit\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestExit(*testing.T) { os.Exit(3) }\n",
	"leak/main_test.go": "package leak\n\nimport (\n\t\"fmt\"\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestMain(m *testing.M) { m.Run(); fmt.Println(\"a goroutine is left\"); os.Exit(1) }\n\nfunc TestFine(*testing.T) {}\n",
	"empty/empty.go":    "package empty\n",
	"other/go.mod":      "module example.org/other\n\ngo 1.26\n",
	"other/o_test.go":   "package other\n\nimport \"testing\"\n\nfunc TestOther(*testing.T) {}\n",
	// What waits ends only if what comes is not waited for, and runs beside it.
	"await/a_test.go":    "package await\n\nimport (\n\t\"os\"\n\t\"testing\"\n\t\"time\"\n)\n\nfunc TestAwait(t *testing.T) {\n\tfor range 6000 {\n\t\tif _, err := os.Stat(\"../come/came\"); err == nil {\n\t\t\treturn\n\t\t}\n\t\ttime.Sleep(10 * time.Millisecond)\n\t}\n\tt.Error(\"nothing came\")\n}\n",
	"come/c_test.go":     "package come\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestCome(t *testing.T) { os.WriteFile(\"came\", nil, 0o600) }\n",
	"nothing/go.mod":     "module example.org/nothing\n\ngo 1.26\n",
	"nothing/nothing.go": "package nothing\n",
}

func TestSummary(t *testing.T) {
	root := t.TempDir()
	for name, text := range project {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		in     []string // modules, below the root
		args   []string
		ok     bool
		totals string
		says   []string
	}{
		"pass and skip": {
			args: []string{"./good", "./skip", "./empty"}, ok: true, totals: "2 passed, 0 failed, 1 skipped",
			says: []string{"ok    example.org/project/good", "skipped TestSkip: skip_test.go:5: no moon tonight", "-     example.org/project/empty"},
		},
		"failed subtest": {
			args: []string{"./bad"}, totals: "1 passed, 2 failed, 0 skipped",
			says: []string{"off by one", "FAIL  example.org/project/bad TestBad/sub"},
		},
		"build failure": {
			args: []string{"./build", "./good"}, totals: "2 passed, 1 failed, 0 skipped",
			says: []string{`cannot use "text"`, "FAIL  example.org/project/build"},
		},
		"panic": {
			args: []string{"./panic"}, totals: "0 passed, 1 failed, 0 skipped", says: []string{"lost my towel"},
		},
		"exit inside a test": {
			args: []string{"./exit"}, totals: "0 passed, 1 failed, 0 skipped", says: []string{"FAIL  example.org/project/exit TestExit"},
		},
		"failure of TestMain": {
			args: []string{"./leak"}, totals: "1 passed, 1 failed, 0 skipped", says: []string{"a goroutine is left"},
		},
		"no such package": {
			args: []string{"./absent"}, totals: "0 passed, 1 failed, 0 skipped", says: []string{"FAIL  ./absent"},
		},
		"no such directory": {
			in: []string{"absent"}, args: []string{"./..."}, totals: "0 passed, 1 failed, 0 skipped", says: []string{"no test failed"},
		},
		"no tests at all": {
			in: []string{"nothing"}, args: []string{"./..."}, totals: "0 passed, 1 failed, 0 skipped", says: []string{"no test ran"},
		},
		"several runs": {
			args:   []string{"./good", "--", "-C", root, "-short", "./bad"},
			totals: "3 passed, 2 failed, 0 skipped", says: []string{"example.org/project/good", "off by one"},
		},
		"a run beside another": {
			args: []string{"./good", "--beside", "-C", root, "./await", "--beside", "-C", root, "./bad", "--", "-C", root, "./come"}, totals: "5 passed, 2 failed, 0 skipped",
			says: []string{"ok    example.org/project/await", "off by one", "FAIL  example.org/project/bad TestBad/sub"},
		},
		"several modules": {
			in: []string{"good", "other"}, args: []string{"./..."}, ok: true,
			totals: "3 passed, 0 failed, 0 skipped", says: []string{"example.org/project/good", "example.org/other"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var text strings.Builder
			var args []string
			for _, module := range test.in {
				args = append(args, "-C", filepath.Join(root, module))
			}
			if test.in == nil {
				args = []string{"-C", root}
			}
			if ok := run(append(args, test.args...), &text) == 0; ok != test.ok {
				t.Errorf("ok = %v, want %v", ok, test.ok)
			}
			if !strings.HasSuffix(text.String(), "\n"+test.totals+"\n") {
				t.Errorf("does not end with the line %q", test.totals)
			}
			for _, what := range test.says {
				if !strings.Contains(text.String(), what) {
					t.Errorf("does not say %q", what)
				}
			}
			if t.Failed() {
				t.Logf("output:\n%s", text.String())
			}
		})
	}
}

// A stream that breaks off leaves packages and tests without a result.
func TestSummaryOfACutStream(t *testing.T) {
	var text strings.Builder
	out := bufio.NewWriter(&text)
	s := newSummary(out)
	stream := `{"Action":"start","Package":"example.org/p"}
{"Action":"run","Package":"example.org/p","Test":"TestDone"}
{"Action":"pass","Package":"example.org/p","Test":"TestDone"}
{"Action":"run","Package":"example.org/p","Test":"TestRunning"}
{"Action":"output","Package":"example.org/p","Test":"TestRunning","Output":"last words\n"}
not an event
{"Action":"start","Package":"example.org/q"}
{"Action":"output","Pack`
	if err := readEvents(strings.NewReader(stream), s, &output{to: out}); err != nil {
		t.Fatal(err)
	}
	s.endRun(".", nil)
	if s.end() {
		t.Error("all is said to be well")
	}
	out.Flush()
	if want := (counts{passed: 1, failed: 2}); s.total != want {
		t.Errorf("totals: %v, want %v", s.total, want)
	}
	for _, what := range []string{"last words\n(ended without a result)", "not an event\n", "FAIL  example.org/q"} {
		if !strings.Contains(text.String(), what) {
			t.Errorf("does not say %q:\n%s", what, text.String())
		}
	}
}

func TestSlowestTests(t *testing.T) {
	var text strings.Builder
	out := bufio.NewWriter(&text)
	s := newSummary(out)
	var stream strings.Builder
	for i := range 20 {
		fmt.Fprintf(&stream, `{"Action":"pass","Package":"example.org/p","Test":"Test%02d","Elapsed":%d.5}`+"\n", i, i)
	}
	stream.WriteString(`{"Action":"fail","Package":"example.org/q","Test":"TestBad","Elapsed":9.7}` + "\n")
	stream.WriteString(`{"Action":"pass","Package":"example.org/q","Test":"TestGood/part","Elapsed":99}` + "\n")
	if err := readEvents(strings.NewReader(stream.String()), s, &output{to: out}); err != nil {
		t.Fatal(err)
	}
	s.end()
	out.Flush()
	var want strings.Builder
	want.WriteString("\nslowest tests:\n")
	for i := 19; i >= 6; i-- {
		fmt.Fprintf(&want, "%8.1fs  example.org/p Test%02d\n", float64(i)+0.5, i)
		if i == 10 {
			want.WriteString("     9.7s  example.org/q TestBad\n")
		}
	}
	if want.WriteString("\n"); !strings.Contains(text.String(), want.String()) {
		t.Errorf("does not list the 15 slowest, the slowest first:\n%s\nwant\n%s", text.String(), want.String())
	}
}
