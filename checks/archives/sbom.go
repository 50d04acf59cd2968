package archives

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// bill and the types below are the parts of CycloneDX 1.5 that a bill of a Go binary's materials
// needs: https://cyclonedx.org/docs/1.5/json/. Their contents come from the binary's own build
// information.
type bill struct {
	Schema       string       `json:"$schema"`
	BOMFormat    string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	SerialNumber string       `json:"serialNumber"`
	Version      int          `json:"version"`
	Metadata     billMetadata `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type billMetadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	BOMRef     string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// newSBOM returns the bill of a program's materials: the modules linked into it and the standard
// library. commitTime is the time of its commit.
func newSBOM(name, version string, info *debug.BuildInfo, program []byte, commitTime time.Time) ([]byte, error) {
	sum := sha256.Sum256(program)
	application := component{
		Type: "application", Name: name, Version: version, PURL: purl(info.Main.Path, version),
		Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}},
	}
	application.BOMRef = application.PURL
	for _, s := range info.Settings {
		if strings.HasPrefix(s.Key, "vcs.") || s.Key == "GOARCH" || s.Key == "GOOS" || s.Key == "CGO_ENABLED" {
			application.Properties = append(application.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	parts := []component{{Type: "library", Name: "std", Version: goVersion, PURL: purl("stdlib", goVersion)}}
	for _, m := range linked(info) {
		part := component{Type: "library", Name: m.Path, Version: m.Version, PURL: purl(m.Path, m.Version)}
		if m.Sum != "" {
			part.Properties = []property{{"go:sum", m.Sum}} // sum of all files of the module
		}
		parts = append(parts, part)
	}
	depends := dependency{Ref: application.BOMRef}
	for i := range parts {
		parts[i].BOMRef = parts[i].PURL
		depends.DependsOn = append(depends.DependsOn, parts[i].BOMRef)
	}
	text, err := json.MarshalIndent(bill{
		Schema: "http://cyclonedx.org/schema/bom-1.5.schema.json", BOMFormat: "CycloneDX", SpecVersion: "1.5",
		SerialNumber: serialNumber(sum), Version: 1,
		Metadata:   billMetadata{Timestamp: commitTime.Format(time.RFC3339), Component: application},
		Components: parts, Dependencies: []dependency{depends},
	}, "", "  ")
	return append(text, '\n'), err
}

// linked returns the modules that a program was linked from. A replaced module is listed as its
// replacement.
func linked(info *debug.BuildInfo) (modules []*debug.Module) {
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		modules = append(modules, m)
	}
	slices.SortFunc(modules, func(a, b *debug.Module) int { return strings.Compare(a.Path, b.Path) })
	return modules
}

func purl(module, version string) string { return "pkg:golang/" + module + "@" + version }

// serialNumber returns a UUID made from the hash of the program, so the same bill has the same
// number.
func serialNumber(sum [sha256.Size]byte) string {
	id := sum[:16]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
