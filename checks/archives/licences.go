package archives

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
)

// licenceFile matches the files that must accompany everything made from a module.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// addLicences adds the licences of all modules linked into the program, and Go's own, below
// licences/. A module without a licence is an error, since it may not be distributed.
func (c *Config) addLicences(ctx context.Context, t *tarball, info *debug.BuildInfo) error {
	root, err := c.run(ctx, nil, "go", "env", "GOROOT")
	if err != nil {
		return err
	}
	if err := addLicence(t, "std", string(bytes.TrimSpace(root))); err != nil {
		return err
	}
	folders, err := c.moduleFolders(ctx)
	if err != nil {
		return err
	}
	for _, m := range linked(info) {
		if err := addLicence(t, m.Path, folders[m.Path]); err != nil {
			return err
		}
	}
	return nil
}

func addLicence(t *tarball, module, folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("licence of %s: %w", module, err)
	}
	n := 0
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !licenceFile.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return err
		}
		t.add(path.Join("licences", module, entry.Name()), 0o644, text)
		n++
	}
	if n == 0 {
		return fmt.Errorf("%s has no licence in %s", module, folder)
	}
	return nil
}

// moduleFolders returns the directory of each module, by its path.
func (c *Config) moduleFolders(ctx context.Context) (map[string]string, error) {
	list, err := c.run(ctx, []string{"GOWORK=off", "GOFLAGS="}, "go", "list", "-m", "-json", "all")
	if err != nil {
		return nil, err
	}
	folders := make(map[string]string)
	for d := json.NewDecoder(bytes.NewReader(list)); ; {
		var m struct {
			Path, Dir string
			Replace   *struct{ Path, Dir string }
		}
		switch err := d.Decode(&m); {
		case errors.Is(err, io.EOF):
			return folders, nil
		case err != nil:
			return nil, err
		}
		folders[m.Path] = m.Dir
		if m.Replace != nil {
			folders[m.Replace.Path] = m.Replace.Dir
		}
	}
}
