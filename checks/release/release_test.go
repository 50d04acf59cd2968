package release

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/hotparam/hotparam/internal/testenv"
)

const repository = "../.."

// version returns the version that the adapters require.
func version(tb testing.TB) string {
	tb.Helper()
	text := testenv.ReadFile(tb, filepath.Join(repository, "adapters", "chi", "go.mod"))
	mod, err := modfile.Parse("go.mod", []byte(text), nil)
	if err != nil {
		tb.Fatal(err)
	}
	for _, q := range mod.Require {
		if q.Mod.Path == "github.com/hotparam/hotparam" {
			return q.Mod.Version
		}
	}
	tb.Fatal("the adapter for chi requires no hotparam")
	return ""
}

// build writes a release of the repository in its present state.
func build(tb testing.TB) (out string, modules []Module) {
	tb.Helper()
	if _, err := os.Stat(filepath.Join(repository, ".git")); err != nil {
		tb.Skip("not a git checkout: cannot tell which files are under version control")
	}
	out = tb.TempDir()
	modules, err := Build(tb.Context(), Config{Root: repository, Version: version(tb), Out: out, Changed: true})
	if err != nil {
		tb.Fatal(err)
	}
	return out, modules
}

func TestBuild(t *testing.T) {
	out, modules := build(t)
	again, _ := build(t)
	if len(modules) < 4 || modules[0].Tag != version(t) {
		t.Fatalf("released: %+v", modules)
	}
	for _, m := range modules {
		base := filepath.Join(m.Path, "@v", version(t))
		packed := read(t, out, base+".zip")
		if !bytes.Equal(packed, read(t, again, base+".zip")) {
			t.Errorf("%s: its zip is another each time", m.Path)
		}
		var info struct{ Version, Time string }
		if err := json.Unmarshal(read(t, out, base+".info"), &info); err != nil || info.Version != version(t) || !strings.HasSuffix(info.Time, "Z") {
			t.Errorf("%s: info %+v, %v", m.Path, info, err)
		}
		if got := string(read(t, out, filepath.Join(m.Path, "@v", "list"))); got != version(t)+"\n" {
			t.Errorf("%s: list %q", m.Path, got)
		}
		names := contents(t, packed, m.Path+"@"+version(t)+"/")
		for _, want := range []string{"LICENSE", "go.mod", "go.sum"} {
			if !slices.Contains(names, want) {
				t.Errorf("%s: its zip has no %s", m.Path, want)
			}
		}
		for _, name := range names {
			if strings.HasPrefix(name, ".git/") || strings.HasPrefix(name, "bin/") || strings.HasPrefix(name, "benchmarks/") || strings.Contains(name, "/go.mod") {
				t.Errorf("%s: its zip has %s", m.Path, name)
			}
		}
		dir, _ := strings.CutSuffix(m.Tag, version(t))
		if want, err := os.ReadFile(filepath.Join(repository, dir, "go.mod")); err != nil || !bytes.Equal(want, read(t, out, base+".mod")) {
			t.Errorf("%s: its go.mod is not that of the repository (%v)", m.Path, err)
		}
	}
}

func read(tb testing.TB, dir, name string) []byte {
	tb.Helper()
	return []byte(testenv.ReadFile(tb, filepath.Join(dir, name)))
}

// contents returns the names in a zip, which all begin with prefix.
func contents(t *testing.T, packed []byte, prefix string) (names []string) {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		name, ok := strings.CutPrefix(f.Name, prefix)
		if !ok {
			t.Errorf("%s is not below %s", f.Name, prefix)
		}
		names = append(names, name)
	}
	return names
}

// A release is refused, with the way to mend it, if it would contain something other than
// intended.
func TestRefuses(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		testenv.WriteFile(t, path, text)
	}
	git := func(args ...string) {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", root, "-c", "user.name=test", "-c", "user.email=test@example.org"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("%s: %v\n%s", cmd, err, out)
		}
	}
	adapter := "module example.org/m/adapters/a\n\nrequire example.org/m v1.0.0\n"
	write("go.mod", "module example.org/m\n")
	write("LICENSE", "all of it")
	write("m.go", "package m\n")
	write("adapters/a/go.mod", adapter)
	write("adapters/a/a.go", "package a\n")
	git("init", "-q")
	git("add", ".")
	git("commit", "-q", "-m", "m: first")
	write("not-added.go", "package m\n")
	release := func(version string) error {
		_, err := Build(t.Context(), Config{Root: root, Version: version, Out: filepath.Join(root, "out")})
		return err
	}
	for _, v := range []string{"", "1.0.0", "v1", "v1.0", "v2.0.0", "latest"} {
		if err := release(v); err == nil {
			t.Errorf("version %q is accepted", v)
		}
	}
	if err := release("v1.0.0"); err != nil {
		t.Fatal(err)
	}
	packed := read(t, root, "out/example.org/m/@v/v1.0.0.zip")
	if got := contents(t, packed, "example.org/m@v1.0.0/"); !slices.Equal(got, []string{"LICENSE", "go.mod", "m.go"}) {
		t.Errorf("the zip has %q", got)
	}
	packed = read(t, root, "out/example.org/m/adapters/a/@v/v1.0.0.zip")
	if got := contents(t, packed, "example.org/m/adapters/a@v1.0.0/"); !slices.Equal(got, []string{"a.go", "go.mod", "LICENSE"}) {
		t.Errorf("the adapter's zip has %q", got)
	}
	if err := release("v1.1.0"); err == nil || !strings.Contains(err.Error(), "go mod edit -require=example.org/m@v1.1.0 adapters/a/go.mod") {
		t.Errorf("an adapter that requires another version: %v", err)
	}
	for text, want := range map[string]string{
		adapter + "replace example.org/m => ../..\n":     "replace",
		"module example.org/a\n":                         "want example.org/m/adapters/a",
		"module example.org/m/adapters/a\n":              "does not require example.org/m",
		"module example.org/m/adapters/a\n\nrequire x\n": "adapters/a/go.mod:3",
	} {
		write("adapters/a/go.mod", text)
		if err := release("v1.0.0"); err == nil || !strings.Contains(err.Error(), "not committed") {
			t.Errorf("a change that is not committed: %v", err)
		}
		git("commit", "-q", "-a", "-m", "m: next")
		if err := release("v1.0.0"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
