package archives

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// A command that prints the version set by the linker, and completes nothing.
const program = `package main

import "os"

var version string

func main() {
	os.Stdout.WriteString(version + " " + os.Args[1] + "\n")
}
`

// newRepository makes a repository with a command in it. Its files have a time of their own.
func newRepository(t *testing.T) (root string) {
	t.Helper()
	root = filepath.Join(t.TempDir(), "here")
	for name, text := range map[string]string{"go.mod": "module example.com/tiny\n\ngo 1.26\n", "cmd/tiny/main.go": program, "unit": "[Unit]\n", ".gitignore": "ignored\n"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		testenv.WriteFile(t, path, text)
	}
	git(t, root, "init", "-q")
	git(t, root, "add", ".")
	git(t, root, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "all")
	return root
}

func git(t *testing.T, root string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", args...)
	command.Dir = root
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, output)
	}
}

// The same commit makes the same bytes in another folder, later.
func TestArchivesAreReproducible(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles: left out with -short")
	}
	t.Parallel()
	first := newRepository(t)
	second := filepath.Join(t.TempDir(), "there", "and", "deeper")
	git(t, first, "clone", "-q", first, second)
	var outs [2]string
	var names [2][]string
	for i, root := range []string{first, second} {
		outs[i] = filepath.Join(t.TempDir(), "out")
		if i == 1 { // what a build must not depend on
			if err := os.Chtimes(filepath.Join(root, "unit"), time.Time{}, time.Unix(1e9, 0)); err != nil {
				t.Fatal(err)
			}
		}
		made, err := Build(t.Context(), Config{
			Root: root, Version: "v1.2.3", Out: outs[i], Package: "./cmd/tiny", Architectures: []string{runtime.GOARCH},
			Files: map[string]string{"systemd/tiny.service": "unit"}, Shells: []string{"bash"},
		})
		if err != nil {
			t.Fatal(err)
		}
		names[i] = made
	}
	base := "tiny_1.2.3_linux_" + runtime.GOARCH
	if got := strings.Join(names[0], " "); got != base+".tar.gz "+base+".cdx.json SHA256SUMS" {
		t.Errorf("made: %s", got)
	}
	for _, name := range names[0] {
		a, b := read(t, outs[0], name), read(t, outs[1], name)
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs: %d and %d bytes", name, len(a), len(b))
		}
	}
	command := exec.CommandContext(t.Context(), "sha256sum", "-c", "SHA256SUMS")
	command.Dir = outs[1]
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
	checkArchive(t, read(t, outs[0], base+".tar.gz"), base)
	checkBill(t, read(t, outs[0], base+".cdx.json"))
}

func read(t *testing.T, folder, name string) []byte {
	t.Helper()
	return []byte(testenv.ReadFile(t, filepath.Join(folder, name)))
}

// checkArchive checks that the archive has all required files, and that its program runs and
// prints its version.
func checkArchive(t *testing.T, archive []byte, base string) {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for r := tar.NewReader(zip); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(head.Name, base+"/")
		files[name] = string(text)
		if head.Uid != 0 || head.Gid != 0 || head.Uname != "" || (head.Mode == 0o755) != (name == "tiny") {
			t.Errorf("%s: mode %o, of %d:%d %q", name, head.Mode, head.Uid, head.Gid, head.Uname)
		}
	}
	if files["completions/tiny.bash"] != "v1.2.3 completion\n" || files["systemd/tiny.service"] != "[Unit]\n" || files["licences/std/LICENSE"] == "" || files["tiny.cdx.json"] == "" {
		t.Errorf("files: %q", files["completions/tiny.bash"])
	}
	binary := filepath.Join(t.TempDir(), "tiny")
	if err := os.WriteFile(binary, []byte(files["tiny"]), 0o700); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.CommandContext(t.Context(), binary, "runs").Output(); err != nil || string(output) != "v1.2.3 runs\n" {
		t.Errorf("%q, %v", output, err)
	}
}

// checkBill checks that a bill of materials meets the requirements of CycloneDX.
func checkBill(t *testing.T, text []byte) {
	t.Helper()
	var b bill
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	if b.BOMFormat != "CycloneDX" || b.SpecVersion != "1.5" || b.Version != 1 ||
		!regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(b.SerialNumber) {
		t.Errorf("%+v", b)
	}
	if _, err := time.Parse(time.RFC3339, b.Metadata.Timestamp); err != nil {
		t.Error(err)
	}
	own := b.Metadata.Component
	if own.PURL != "pkg:golang/example.com/tiny@v1.2.3" || len(own.Hashes) != 1 || len(b.Components) != 1 || b.Components[0].Name != "std" ||
		b.Dependencies[0].Ref != own.BOMRef || len(b.Dependencies[0].DependsOn) != 1 {
		t.Errorf("%+v", b)
	}
}

func TestReleaseOfWhatIsNotCommitted(t *testing.T) {
	root := newRepository(t)
	testenv.WriteFile(t, filepath.Join(root, "unit"), "changed")
	config := Config{Root: root, Version: "v1.2.3", Out: t.TempDir(), Package: "./cmd/tiny"}
	if _, err := Build(t.Context(), config); err == nil || !strings.Contains(err.Error(), "not committed") {
		t.Errorf("%v", err)
	}
	config.Version = "1.2"
	if _, err := Build(t.Context(), config); err == nil || !strings.Contains(err.Error(), "no version") {
		t.Errorf("%v", err)
	}
}
