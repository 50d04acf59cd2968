package mutants

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

// Fault is a mistake that is planted in the product.
type Fault struct {
	Name string
	File string // slash-separated path from the module's root
	// Old is a text that occurs exactly once in the file, and New is its replacement. They are as
	// short as possible while unique, so that changes around them do no harm.
	Old, New string
	// Package is the path, from the module's root, of the package whose tests must find the
	// fault. Empty means the file's own package.
	Package string
	// Test matches the names of the tests that must find the fault. One of them is enough.
	Test string
}

//go:embed faults/*.txt
var files embed.FS

// Faults returns all faults. It panics if a file cannot be read, since the files are part of the
// program.
func Faults() (all []Fault) {
	names, err := fs.Glob(files, "faults/*.txt")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err == nil {
			var faults []Fault
			faults, err = parseFaults(string(text))
			all = append(all, faults...)
		}
		if err != nil {
			panic(fmt.Sprintf("mutants: %s: %v", name, err))
		}
	}
	return all
}

// parseFaults parses a file of faults. They are separated by empty lines, and a line that begins
// with # is a comment:
//
//	a key is cut at its first byte
//	rules/key.go: TestKey|TestText in checks/interop
//	-text[:n]
//	+text[:1]
//
// The first line is the name. The second one has the file, the tests and, if that is not the file's
// own, their package. The text follows line by line, as in a diff: what is replaced, then its
// replacement, if there is one.
func parseFaults(text string) (faults []Fault, err error) {
	for part := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if strings.HasPrefix(part, "#") {
			continue
		}
		lines := strings.Split(strings.TrimRight(part, "\n"), "\n")
		if len(lines) < 3 {
			return nil, fmt.Errorf("%q: want a name, a file with tests, and a text", part)
		}
		f := Fault{Name: lines[0]}
		var tests string
		f.File, tests, _ = strings.Cut(lines[1], ": ")
		f.Test, f.Package, _ = strings.Cut(tests, " in ")
		var old, replacement []string
		for _, line := range lines[2:] {
			switch {
			case strings.HasPrefix(line, "-") && len(replacement) == 0:
				old = append(old, line[1:])
			case strings.HasPrefix(line, "+"):
				replacement = append(replacement, line[1:])
			default:
				return nil, fmt.Errorf("%s: %q: want lines that begin with -, then lines that begin with +", f.Name, line)
			}
		}
		f.Old, f.New = strings.Join(old, "\n"), strings.Join(replacement, "\n")
		faults = append(faults, f)
	}
	return faults, nil
}
