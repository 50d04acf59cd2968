package hotparam_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/hotparam/hotparam"

// arrows tells which packages of this module each package may import, outside of
// tests. It is the table of docs/DESIGN.md: a new arrow is a decision about the
// design, so it is made here on purpose, not by an editor that adds imports.
var arrows = map[string][]string{
	"hotparam":            {"internal/floor", "internal/hexdigit", "internal/spelling"},
	"wire":                {"hotparam", "internal/hexdigit"},
	"limiter":             {"hotparam", "limiter/internal/breaker"},
	"limiter/limitertest": {"hotparam", "limiter"},
	"kafka":               {"internal/secret"},
	"config":              {"hotparam", "wire", "kafka", "internal/secret", "internal/spelling"},
	"collector":           {"hotparam", "wire", "internal/backoff", "internal/floor"},
	"aggregator":          {"hotparam", "wire", "internal/openfiles"},
	"hotkeys":             {"hotparam", "wire", "internal/backoff", "internal/secret"},

	"collector/kafkasink":       {"hotparam", "wire", "kafka", "collector", "internal/backoff"},
	"aggregator/kafkasource":    {"hotparam", "wire", "kafka", "aggregator", "internal/backoff"},
	"aggregator/graphitesource": {"hotparam", "wire", "aggregator"},
	"limiter/redislimiter":      {"hotparam", "limiter", "limiter/internal/breaker"},
	"limiter/internal/breaker":  nil,
	"middleware":                {"hotparam", "wire", "collector", "hotkeys", "limiter"},

	"internal/exact":                  nil, // the yardstick: shares no code with what it measures
	"internal/exact/cmd/verifyreplay": {"internal/exact"},
	"internal/e2e":                    nil, // tests alone
	"internal/interop":                nil, // tests alone
	"deploy":                          nil, // tests alone
	"internal/kafkafake":              nil,
	"internal/httpserve":              {"internal/openfiles"},
	"internal/openfiles":              nil,
	"internal/secret":                 nil,
	"internal/backoff":                nil,
	"internal/floor":                  nil,
	"internal/hexdigit":               nil,
	"internal/spelling":               nil,
	"internal/termshot":               nil,
	"internal/overlay":                nil,
	"internal/mutants":                {"internal/overlay"},
	"internal/mutants/cmd/mutants":    {"internal/mutants"},

	"internal/accesslog":   nil,
	"internal/demo/data":   nil,
	"internal/testenv":     nil,
	"internal/testsummary": nil,
	"internal/replay":      everythingButCommands,
	"internal/demo":        everythingButCommands,

	"internal/bench":               {"hotparam", "wire", "kafka", "collector", "collector/kafkasink", "aggregator", "aggregator/kafkasource", "hotkeys", "middleware", "internal/accesslog", "internal/kafkafake"},
	"internal/bench/cmd/benchpage": {"hotparam", "internal/bench"},

	"internal/claims":                  {"hotparam", "wire", "collector", "aggregator", "internal/accesslog", "internal/exact"},
	"internal/claims/cmd/verifyclaims": {"internal/claims"},

	// The oracle shares no code with what it judges; the instance does what a user could do.
	"internal/chaos":              {"internal/chaos/oracle", "internal/overlay", "internal/testenv"},
	"internal/chaos/oracle":       nil,
	"internal/chaos/cmd/chaos":    {"internal/chaos"},
	"internal/chaos/cmd/instance": everythingPublic,

	"cmd/hotparam": everythingButCommands,

	// An example does what a user could do.
	"examples/api":          everythingPublic,
	"examples/scenarios":    everythingPublic,
	"examples/stamina":      everythingPublic,
	"examples/outgoing":     everythingPublic,
	"examples/workers":      everythingPublic,
	"examples/ownbackend":   everythingPublic,
	"examples/ownalgorithm": everythingPublic,
}

var (
	everythingPublic      = []string{"hotparam", "wire", "limiter", "limiter/redislimiter", "kafka", "config", "collector", "collector/kafkasink", "aggregator", "aggregator/kafkasource", "aggregator/graphitesource", "hotkeys", "middleware"}
	everythingButCommands = append(slices.Clone(everythingPublic), "internal/accesslog", "internal/bench", "internal/demo", "internal/demo/data", "internal/httpserve", "internal/kafkafake", "internal/replay", "internal/secret")
)

// standardOnly are the packages that bring no dependency into anybody's build.
var standardOnly = []string{"hotparam", "internal/backoff", "internal/floor", "internal/hexdigit", "internal/spelling", "wire", "limiter", "limiter/internal/breaker", "kafka"}

// testOnly are import paths, with all below them, that only tests may import, and
// the packages which are excepted because they are themselves made for tests, or
// are a program that runs without a real server.
var testOnly = map[string][]string{
	"testing":                            {"internal/testenv", "internal/chaos", "limiter/limitertest"},
	"pgregory.net/rapid":                 {"limiter/limitertest"},
	"go.uber.org/goleak":                 {"internal/testenv"},
	"github.com/testcontainers":          {"internal/testenv"},
	"github.com/moby":                    {"internal/testenv"},
	"github.com/alicebob/miniredis":      {"internal/demo"},
	"github.com/twmb/franz-go/pkg/kfake": {"internal/kafkafake"},
	module + "/internal/testenv":         {"internal/chaos"},
	module + "/limiter/limitertest":      nil,
}

type goPackage struct {
	ImportPath string
	Imports    []string
}

func (p goPackage) name() string { return shortName(p.ImportPath) }

func shortName(path string) string {
	if path == module {
		return "hotparam"
	}
	return strings.TrimPrefix(path, module+"/")
}

func TestImportsPointOneWay(t *testing.T) {
	for _, p := range listPackages(t) {
		allowed, known := arrows[p.name()]
		if !known {
			t.Errorf("package %s is not in the table: add it to arrows in imports_test.go, with what it may import", p.name())
			continue
		}
		for _, imported := range p.Imports {
			if inModule(imported) && !slices.Contains(allowed, shortName(imported)) {
				t.Errorf("%s imports %s; it may import only %q (see arrows in imports_test.go)", p.name(), shortName(imported), allowed)
			}
			if !isStandard(imported) && !inModule(imported) && slices.Contains(standardOnly, p.name()) {
				t.Errorf("%s imports %s; it may import only the standard library", p.name(), imported)
			}
		}
	}
}

func TestTestLibrariesStayInTests(t *testing.T) {
	for _, p := range listPackages(t) {
		for _, imported := range p.Imports {
			for library, excepted := range testOnly {
				if isBelow(imported, library) && !slices.Contains(excepted, p.name()) {
					t.Errorf("%s imports %s outside of its tests", p.name(), imported)
				}
			}
		}
	}
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, stderr.String())
	}
	var packages []goPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", cmd, err)
		}
		packages = append(packages, p)
	}
	if len(packages) == 0 {
		t.Fatalf("%s lists no package", cmd)
	}
	return packages
}

func inModule(path string) bool { return isBelow(path, module) }

func isBelow(path, parent string) bool {
	return path == parent || strings.HasPrefix(path, parent+"/")
}

// isStandard uses what the go command promises: only paths outside of the standard
// library have a dot in their first element.
func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}
