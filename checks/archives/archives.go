// Package archives makes the downloads of a release: for each platform a tar.gz with the static
// binary and its files, a bill of its materials, and the sums of all. The same commit makes the
// same bytes, wherever and whenever it is built.
//
// GoReleaser and cyclonedx-gomod were rejected. A bill of materials by cyclonedx-gomod has the
// time of its run and the hashes of the tool itself, so two builds of one commit differ. Neither
// puts the licences of all linked modules into the archive.
package archives

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Config configures a build. Root, Version, Out, Package and Architectures are required.
type Config struct {
	Root          string   // root of the repository, without uncommitted changes
	Version       string   // "v1.2.3"
	Out           string   // output directory; existing files of the same names are replaced
	Package       string   // the command, "./cmd/hotparam"
	Tags          string   // build tags, "lean,grpcnotrace"; may be empty
	Architectures []string // architectures of Linux: "amd64"
	// Files are added to each archive: names in the archive, with paths below Root.
	Files map[string]string
	// Shells lists the shells that get a file completions/NAME.SHELL, the output of `NAME
	// completion SHELL`.
	Shells []string
}

var versionForm = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?$`)

// Build makes the archives and returns the names of all files in Out, SHA256SUMS last.
func Build(ctx context.Context, c Config) (made []string, err error) {
	if !versionForm.MatchString(c.Version) {
		return nil, fmt.Errorf("release: %q is no version such as v0.1.0", c.Version)
	}
	if changes, err := c.run(ctx, nil, "git", "status", "--porcelain"); err != nil {
		return nil, err
	} else if len(changes) > 0 {
		return nil, fmt.Errorf("release: these changes are not committed:\n%s", changes)
	}
	committed, err := c.commitTime(ctx)
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "release-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return nil, err
	}
	completions, err := c.completions(ctx, work)
	if err != nil {
		return nil, err
	}
	for _, arch := range c.Architectures {
		names, err := c.buildFor(ctx, arch, work, committed, completions)
		if err != nil {
			return nil, fmt.Errorf("release: linux/%s: %w", arch, err)
		}
		made = append(made, names...)
	}
	sums, err := c.sums(made)
	if err != nil {
		return nil, err
	}
	const sumsFile = "SHA256SUMS"
	return append(made, sumsFile), os.WriteFile(filepath.Join(c.Out, sumsFile), sums, 0o644)
}

func (c *Config) name() string { return filepath.Base(c.Package) }

// compile builds the command for an architecture. It stamps in the version, the commit and its
// time, but no paths of this machine.
func (c *Config) compile(ctx context.Context, arch, to string) error {
	_, err := c.run(ctx, []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + arch, "GOWORK=off", "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0"},
		"go", "build", "-trimpath", "-buildvcs=true", "-tags="+c.Tags, "-ldflags=-s -w -buildid= -X main.version="+c.Version, "-o", to, c.Package)
	return err
}

// completions builds the command for this machine and returns the completion scripts that it
// writes for each shell.
func (c *Config) completions(ctx context.Context, work string) (map[string][]byte, error) {
	if len(c.Shells) == 0 {
		return nil, nil
	}
	if runtime.GOOS != "linux" {
		return nil, errors.New("release: completions are written by the command itself: build on Linux")
	}
	binary := filepath.Join(work, "own")
	if err := c.compile(ctx, runtime.GOARCH, binary); err != nil {
		return nil, err
	}
	files := make(map[string][]byte)
	for _, shell := range c.Shells {
		text, err := c.run(ctx, nil, binary, "completion", shell)
		if err != nil {
			return nil, err
		}
		files["completions/"+c.name()+"."+shell] = text
	}
	return files, nil
}

// buildFor writes the archive of an architecture and its bill of materials.
func (c *Config) buildFor(ctx context.Context, arch, work string, committed time.Time, completions map[string][]byte) ([]string, error) {
	binary := filepath.Join(work, arch)
	if err := c.compile(ctx, arch, binary); err != nil {
		return nil, err
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return nil, err
	}
	base := fmt.Sprintf("%s_%s_linux_%s", c.name(), strings.TrimPrefix(c.Version, "v"), arch)
	sbom, err := newSBOM(c.name(), c.Version, info, program, committed)
	if err != nil {
		return nil, err
	}
	tarball := tarball{folder: base, modified: committed}
	tarball.add(c.name(), 0o755, program)
	tarball.add(c.name()+".cdx.json", 0o644, sbom)
	for name, text := range completions {
		tarball.add(name, 0o644, text)
	}
	for name, path := range c.Files {
		text, err := os.ReadFile(filepath.Join(c.Root, path))
		if err != nil {
			return nil, err
		}
		tarball.add(name, 0o644, text)
	}
	if err := c.addLicences(ctx, &tarball, info); err != nil {
		return nil, err
	}
	archive, err := tarball.bytes()
	if err != nil {
		return nil, err
	}
	names := []string{base + ".tar.gz", base + ".cdx.json"}
	for i, data := range [][]byte{archive, sbom} {
		if err := os.WriteFile(filepath.Join(c.Out, names[i]), data, 0o644); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// sums returns the lines of `sha256sum` for files in Out.
func (c *Config) sums(names []string) ([]byte, error) {
	var lines bytes.Buffer
	for _, name := range slices.Sorted(slices.Values(names)) {
		data, err := os.ReadFile(filepath.Join(c.Out, name))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&lines, "%x  %s\n", sha256.Sum256(data), name)
	}
	return lines.Bytes(), nil
}

// commitTime returns the time of the commit, which is the time of all files built from it.
func (c *Config) commitTime(ctx context.Context) (time.Time, error) {
	text, err := c.run(ctx, nil, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return time.Time{}, err
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return time.Unix(seconds, 0).UTC(), err
}

// run runs a command in Root and returns its output. environment adds variables to those of this
// process.
func (c *Config) run(ctx context.Context, environment []string, name string, args ...string) ([]byte, error) {
	var stderr strings.Builder
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Stderr = c.Root, &stderr
	command.Env = append(os.Environ(), environment...)
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("release: %s: %w\n%s", command, err, stderr.String())
	}
	return output, nil
}
