// Package release makes the files that a module proxy serves for a release: those of this module
// and of each adapter. A directory of them is a GOPROXY, from which tests install the same
// modules as users. A proxy makes files with the same sums from the tags.
package release

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/mod/zip"
)

// Config configures a release.
type Config struct {
	Root    string // root of the repository
	Version string // "v1.2.3"
	Out     string // the directory of the files, which may hold other versions
	// Changed releases files as they are now. If it is false, an uncommitted change is an error.
	Changed bool
}

// Module is a module that was released.
type Module struct {
	Path string
	Tag  string // tag of its version: "v1.2.3", "adapters/gin/v1.2.3"
}

// Build writes the files of all modules and returns the modules, this one first. It takes only
// files under version control.
func Build(ctx context.Context, c Config) ([]Module, error) {
	if !semver.IsValid(c.Version) || semver.Canonical(c.Version) != c.Version || semver.Major(c.Version) > "v1" {
		return nil, fmt.Errorf("release: %q is no version such as v0.1.0", c.Version)
	}
	files, err := c.git(ctx, "ls-files", "-z")
	if err != nil {
		return nil, err
	}
	if changes, err := c.git(ctx, "status", "--porcelain", "--untracked-files=no"); err != nil {
		return nil, err
	} else if changes != "" && !c.Changed {
		return nil, fmt.Errorf("release: these changes are not committed:\n%s", changes)
	}
	committed, err := c.git(ctx, "log", "-1", "--format=%ct")
	if err != nil {
		return nil, err
	}
	var seconds int64
	if _, err := fmt.Sscan(committed, &seconds); err != nil {
		return nil, fmt.Errorf("release: the time of the commit: %w", err)
	}
	r := &release{Config: c, time: time.Unix(seconds, 0).UTC()}
	for name := range strings.SplitSeq(strings.TrimRight(files, "\x00"), "\x00") {
		if _, err := os.Lstat(filepath.Join(c.Root, name)); err == nil { // skips deleted files
			r.files = append(r.files, name)
		}
	}
	if err := r.findModules(); err != nil {
		return nil, err
	}
	var modules []Module
	for _, m := range r.modules {
		if err := r.write(m); err != nil {
			return nil, fmt.Errorf("release: %s: %w", m.path, err)
		}
		modules = append(modules, Module{m.path, path.Join(m.dir, c.Version)})
	}
	return modules, nil
}

type release struct {
	Config
	time    time.Time
	files   []string // paths from the root, with slashes
	modules []nested
}

// nested is a module of the repository.
type nested struct {
	path string
	dir  string // path from the root, with slashes; empty for the root
	mod  []byte // its go.mod
}

func (c *Config) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", c.Root}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("release: %s: %w: %s", cmd, err, &stderr)
	}
	return string(out), nil
}

// findModules finds the modules to release: this one, and those below adapters.
func (r *release) findModules() error {
	var root *modfile.File
	for _, name := range r.files {
		dir, file := path.Split(name)
		dir = path.Clean(dir)
		if file != "go.mod" || dir != "." && !strings.HasPrefix(dir, "adapters/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(r.Root, filepath.FromSlash(name)))
		if err != nil {
			return fmt.Errorf("release: %w", err)
		}
		mod, err := modfile.Parse(name, text, nil)
		if err != nil {
			return fmt.Errorf("release: %w", err)
		}
		m := nested{path: mod.Module.Mod.Path, mod: text}
		if dir == "." {
			root = mod
			r.modules = slices.Insert(r.modules, 0, m)
			continue
		}
		m.dir = dir
		r.modules = append(r.modules, m)
	}
	if root == nil {
		return errors.New("release: there is no go.mod in the root")
	}
	for _, m := range r.modules {
		if err := r.check(m, root.Module.Mod.Path); err != nil {
			return fmt.Errorf("release: %s: %w", path.Join(m.dir, "go.mod"), err)
		}
	}
	return nil
}

// check checks conditions that a module proxy does not check, but whose violation would break the
// module's users.
func (r *release) check(m nested, root string) error {
	mod, err := modfile.Parse("go.mod", m.mod, nil)
	if err != nil {
		return err
	}
	if len(mod.Replace) > 0 || len(mod.Exclude) > 0 {
		return errors.New("it has replace or exclude, which hold only where it is the main module; go.work does that here")
	}
	if m.dir == "" {
		return nil
	}
	if want := root + "/" + m.dir; m.path != want {
		return fmt.Errorf("its module is %s, want %s", m.path, want)
	}
	for _, q := range mod.Require {
		switch {
		case q.Mod.Path == root && q.Mod.Version == r.Version:
			return nil
		case q.Mod.Path == root:
			return fmt.Errorf("it requires %s %s: to release %s run\n\tgo mod edit -require=%s@%s %s/go.mod\nand commit that", root, q.Mod.Version, r.Version, root, r.Version, m.dir)
		}
	}
	return fmt.Errorf("it does not require %s", root)
}

// write writes the files of a module's version: .info, .mod, .zip, and the list.
func (r *release) write(m nested) error {
	escaped, err := module.EscapePath(m.path)
	if err != nil {
		return err
	}
	dir := filepath.Join(r.Out, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{r.Version, r.time})
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	if err := r.pack(&packed, m); err != nil {
		return err
	}
	for ext, text := range map[string][]byte{".info": info, ".mod": m.mod, ".zip": packed.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, r.Version+ext), text, 0o644); err != nil {
			return err
		}
	}
	released, err := filepath.Glob(filepath.Join(dir, "*.info"))
	if err != nil {
		return err
	}
	list := ""
	for _, name := range released {
		list += strings.TrimSuffix(filepath.Base(name), ".info") + "\n"
	}
	return os.WriteFile(filepath.Join(dir, "list"), []byte(list), 0o644)
}

// pack writes the zip of a module, whose bytes are the same each time. Like the go command, it
// adds the repository's LICENSE if the module has none.
func (r *release) pack(w io.Writer, m nested) error {
	var files []zip.File
	licensed := false
	for _, name := range r.files {
		in := name
		if m.dir != "" {
			var below bool
			if in, below = strings.CutPrefix(name, m.dir+"/"); !below {
				continue
			}
		}
		licensed = licensed || in == "LICENSE"
		files = append(files, moduleFile{in, filepath.Join(r.Root, filepath.FromSlash(name))})
	}
	if !licensed {
		files = append(files, moduleFile{"LICENSE", filepath.Join(r.Root, "LICENSE")})
	}
	return zip.Create(w, module.Version{Path: m.path, Version: r.Version}, files)
}

// moduleFile is a file of a module.
type moduleFile struct{ path, source string }

func (f moduleFile) Path() string                 { return f.path }
func (f moduleFile) Lstat() (os.FileInfo, error)  { return os.Lstat(f.source) }
func (f moduleFile) Open() (io.ReadCloser, error) { return os.Open(f.source) }
