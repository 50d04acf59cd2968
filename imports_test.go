package hotparam_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/hotparam/hotparam"

// arrows lists the packages of this module that each package may import, outside of tests. It is
// the table of docs/DESIGN.md. A new arrow is a decision about the design, so it is made here on
// purpose, not by an editor that adds imports.
var arrows = map[string][]string{
	"rules":               {"internal/answer", "internal/base"},
	"internal/keytext":    {"internal/base", "rules"},
	"internal/wire":       {"internal/base", "rules"},
	"limiter":             {"internal/base", "internal/loglimit", "limiter/internal/breaker", "limiter/internal/calendar", "rules"},
	"limiter/semaphore":   {"limiter", "rules"},
	"limiter/adaptive":    {"rules"},
	"limiter/fleet":       {"internal/base", "limiter", "rules"},
	"limiter/permits":     {"internal/base", "rules", "limiter/internal/permitline"},
	"limiter/limitertest": {"limiter", "limiter/permits", "limiter/semaphore", "rules"},
	"kafka":               {"internal/base"},
	"config":              {"internal/base", "kafka", "rules", "internal/wire"},
	"collector":           {"internal/base", "internal/loglimit", "internal/ring", "rules", "internal/wire", "internal/published"},
	"internal/capacity":   nil,
	"aggregator":          {"internal/baseline", "internal/capacity", "internal/decode", "internal/ring", "internal/snapshot", "aggregator/internal/blame", "aggregator/internal/window", "internal/base", "rules", "internal/wire", "internal/published"},
	"hotset":              {"rules", "internal/published"},
	"hotkeys":             {"hotset", "internal/base", "internal/loglimit", "internal/published", "internal/redisconfig", "rules", "internal/wire"},

	"collector/internal/former":  {"rules"},
	"collector/statsdsink":       {"collector", "collector/internal/former", "internal/base", "rules", "internal/wire"},
	"collector/kafkasink":        {"collector", "collector/internal/former", "internal/base", "internal/kafkaclient", "internal/loglimit", "kafka", "rules", "internal/wire"},
	"internal/decode":            {"internal/ring", "internal/snapshot", "internal/base", "internal/loglimit", "rules", "internal/wire", "internal/keytext", "internal/published"},
	"aggregator/internal/blame":  {"rules", "internal/wire", "internal/published"},
	"aggregator/internal/window": {"internal/decode", "internal/ring", "internal/snapshot", "internal/base", "rules", "internal/wire", "internal/published"},
	"internal/ring":              nil,
	"internal/snapshot":          {"rules", "internal/wire", "internal/published"},
	"internal/baseline":          {"internal/base", "rules"},

	"internal/aggregatortest":     {"internal/base", "rules", "internal/wire"},
	"internal/statsdsource":       {"aggregator", "internal/baseline", "internal/decode", "internal/snapshot", "internal/base", "rules", "internal/wire", "internal/published"},
	"internal/kafkaclient":        {"internal/base", "kafka"},
	"internal/kafkasource":        {"aggregator", "internal/baseline", "internal/decode", "internal/base", "internal/kafkaclient", "internal/loglimit", "kafka", "rules", "internal/wire", "internal/published"},
	"cmd/internal/graphitesource": {"aggregator", "internal/baseline", "internal/decode", "internal/base", "internal/loglimit", "rules", "internal/wire", "internal/keytext", "internal/published"},
	"limiter/redislimiter":        {"internal/base", "internal/loglimit", "limiter", "limiter/fleet", "limiter/internal/breaker", "limiter/internal/calendar", "limiter/permits", "limiter/semaphore", "rules", "limiter/internal/permitline"},
	"limiter/internal/permitline": {"internal/base"},
	"limiter/internal/breaker":    {"internal/base"},
	"limiter/internal/calendar":   {"rules"},
	"middleware/internal/backoff": {"internal/answer", "rules"},
	"middleware/internal/bodies":  {"rules"},
	"middleware/internal/header":  {"rules"},
	"middleware/internal/holding": {"limiter", "rules"},
	"middleware/internal/meter":   nil,
	"middleware/internal/origins": {"internal/wire"},
	"middleware":                  {"collector", "hotset", "internal/answer", "internal/base", "internal/keytext", "middleware/internal/backoff", "middleware/internal/bodies", "middleware/internal/header", "middleware/internal/holding", "middleware/internal/meter", "middleware/internal/origins", "internal/loglimit", "internal/published", "limiter", "limiter/fleet", "limiter/semaphore", "rules", "internal/wire"},

	// The common part of adapters, and the suite that they pass.
	"middleware/adapter":        {"middleware", "internal/base"},
	"middleware/rpc":            {"internal/protofield", "middleware", "rules"},
	"middleware/middlewaretest": {"collector", "config", "middleware/sharing", "middleware", "rules", "internal/published"},

	"hotparam":        {"collector", "collector/statsdsink", "config", "hotkeys", "internal/figure", "internal/onhot", "internal/published", "config/rulesfile", "middleware/sharing", "limiter", "limiter/fleet", "limiter/redislimiter", "middleware", "rules", "internal/wire"},
	"transport/kafka": {"hotparam", "collector/kafkasink", "config"},

	"cmd/internal/gateway":             {"hotparam", "internal/base", "cmd/internal/connlimit", "cmd/internal/httpserve", "internal/loglimit", "middleware", "rules"},
	"cmd/internal/gateway/rls":         {"cmd/internal/connlimit", "cmd/internal/gateway", "middleware", "middleware/rpc", "rules"},
	"cmd/internal/gateway/auth":        {"cmd/internal/gateway", "middleware", "rules"},
	"cmd/internal/gateway/check":       {"internal/base", "cmd/internal/gateway", "middleware", "rules"},
	"cmd/internal/gateway/spoe":        {"cmd/internal/connlimit", "cmd/internal/gateway", "internal/loglimit", "middleware", "rules"},
	"cmd/internal/gateway/gatewaytest": {"hotparam", "cmd/internal/gateway", "internal/testenv", "middleware"},

	"cmd/internal/doctor":  {"hotkeys", "cmd/internal/history", "internal/hotwords", "internal/published", "rules"},
	"cmd/internal/explain": {"config", "hotkeys", "internal/hotwords", "internal/onhot", "cmd/internal/termtext", "internal/wire", "middleware", "rules", "internal/published"},
	"cmd/internal/daemon":  {"aggregator", "collector", "config", "hotkeys", "internal/admitted", "internal/base", "internal/baseline", "internal/decode", "cmd/internal/explain", "internal/figure", "cmd/internal/graphitesource", "cmd/internal/history", "internal/hotwords", "cmd/internal/httpserve", "internal/kafkasource", "cmd/internal/live", "internal/loglimit", "cmd/internal/page", "config/rulesfile", "cmd/internal/sdnotify", "internal/statsdsource", "cmd/internal/status", "cmd/internal/webhook", "internal/wire", "rules", "internal/published"},

	"checks/exact":           nil, // the yardstick: shares no code with the measured code
	"deploy":                 nil, // tests alone
	"internal/kafkafake":     nil,
	"cmd/internal/httpserve": {"internal/base", "cmd/internal/connlimit", "internal/loglimit"},
	"cmd/internal/status":    {"internal/figure", "cmd/internal/httpserve"},
	"internal/figure":        nil,
	"internal/filewatch":     nil,
	"config/rulesfile":       {"config", "internal/figure", "internal/filewatch", "internal/loglimit", "rules"},
	"cmd/internal/sdnotify":  nil,
	"internal/answer":        nil,
	"internal/loglimit":      nil,
	"middleware/sharing":     {"internal/onhot", "middleware", "rules"},
	"internal/onhot":         {"internal/base", "internal/loglimit", "rules"},
	"internal/admitted":      {"limiter", "rules", "internal/published"},
	"internal/hotwords":      {"internal/admitted", "limiter/fleet", "rules", "internal/published"},
	"internal/redisconfig":   {"rules"},
	"internal/published":     {"rules"},
	"cmd/internal/termtext":  nil,
	"cmd/internal/top":       {"hotkeys", "internal/base", "internal/hotwords", "cmd/internal/live", "cmd/internal/termtext", "rules", "internal/published"},
	"cmd/internal/webhook":   {"hotkeys", "internal/base", "cmd/internal/live", "internal/loglimit", "internal/redisconfig", "internal/published"},
	"cmd/internal/live":      {"hotkeys", "internal/admitted", "internal/base", "internal/hotwords", "internal/loglimit", "internal/published", "internal/redisconfig", "rules"},
	"internal/protofield":    nil, // for adapters, which are modules of their own
	"internal/windowgen":     nil,
	"internal/wire/wiretest": nil,
	"internal/hotkeytest":    {"rules", "internal/published"},
	"cmd/internal/history":   {"aggregator", "internal/base", "rules", "internal/published"},
	"cmd/internal/listed":    {"internal/admitted", "internal/hotwords", "cmd/internal/termtext", "rules", "internal/published"},
	"cmd/internal/page":      {"hotkeys", "internal/base", "internal/figure", "internal/hotwords", "cmd/internal/listed", "cmd/internal/live", "internal/loglimit", "limiter", "rules", "internal/published"},
	"internal/metricpage":    {"internal/figure"}, // for tests

	"internal/accesslog":       {"internal/base"},
	"cmd/internal/demo/data":   nil,
	"internal/testenv":         nil,
	"cmd/internal/replay":      everything,
	"cmd/internal/demo":        everything,
	"cmd/internal/demo/screen": {"internal/base", "cmd/internal/demo", "internal/hotwords", "cmd/internal/termtext"},
	"cmd/internal/suggest":     everything,
	"cmd/internal/follow":      everything,

	"internal/yardstick": {"limiter", "limiter/fleet", "limiter/redislimiter", "rules"},
	"cmd/internal/bench": {"aggregator", "internal/decode", "internal/kafkasource", "internal/statsdsource", "collector", "collector/kafkasink", "collector/statsdsink", "hotkeys", "internal/accesslog", "internal/base", "internal/hotwords", "internal/kafkafake", "internal/published", "internal/yardstick", "kafka", "middleware", "rules", "internal/wire"},

	// The oracle shares no code with the system that it judges. The instance uses only the public
	// packages, and the clock that it shares with the harness.
	"checks/chaos/oracle":       nil,
	"checks/chaos/clock":        nil,
	"checks/chaos/cmd/instance": slices.Concat(everythingPublic, []string{"checks/chaos/clock"}),

	"cmd/hotparam":  everything,
	"cmd/benchpage": {"checks/bench/chart", "cmd/internal/bench", "internal/yardstick", "rules"}, // writes docs/BENCH.md

	// Examples use only the public packages.
	"examples/api":                 everythingPublic,
	"examples/scenarios":           everythingPublic,
	"examples/stamina":             everythingPublic,
	"examples/outgoing":            everythingPublic,
	"examples/workers":             everythingPublic,
	"examples/ownbackend":          everythingPublic,
	"examples/ownalgorithm":        everythingPublic,
	"cmd/internal/connlimit":       {"internal/base", "internal/loglimit"},
	"cmd/internal/gateway/service": {"hotparam", "config", "internal/base", "cmd/internal/gateway", "cmd/internal/gateway/auth", "cmd/internal/gateway/check", "cmd/internal/gateway/rls", "cmd/internal/gateway/spoe", "internal/loglimit", "internal/figure", "cmd/internal/sdnotify"},
	"internal/base":                nil,
}

var (
	everythingPublic = []string{"rules", "limiter", "limiter/semaphore", "limiter/adaptive", "limiter/permits", "limiter/redislimiter", "kafka", "config", "collector", "collector/statsdsink", "collector/kafkasink", "aggregator", "hotset", "hotkeys", "middleware", "middleware/adapter", "middleware/rpc", "hotparam", "transport/kafka"}
	// What does not lead on into other packages may import all of the product. Cycles, and what
	// only tests may import, are refused elsewhere.
	everything = []string{"*"}
)

// standardOnly are the packages that, with all their imports, add only the standard library and
// this module's packages to a build. So a guarded API does not pull in Redis, Kafka or a StatsD
// client until its program asks for one.
var standardOnly = []string{"internal/base", "internal/keytext", "internal/published", "middleware/internal/holding", "rules", "internal/loglimit", "internal/wire", "hotset", "limiter", "limiter/semaphore", "limiter/adaptive", "limiter/permits", "limiter/internal/breaker", "limiter/internal/calendar", "limiter/internal/permitline", "collector", "middleware", "middleware/adapter", "kafka"}

// testOnly are import paths, with all below them, that only tests and the demo may import. The
// listed packages are excepted, since they are made for tests, or are a program that runs without
// a real server. No public package imports the paths, directly or indirectly.
var testOnly = map[string][]string{
	"testing":                             {"internal/testenv", "cmd/internal/gateway/gatewaytest", "limiter/limitertest", "middleware/middlewaretest"},
	"pgregory.net/rapid":                  {"internal/windowgen", "limiter/limitertest"},
	"go.uber.org/goleak":                  {"internal/testenv"},
	"github.com/docker":                   nil,
	"github.com/alicebob/miniredis":       {"cmd/internal/demo"},
	"charm.land/bubbletea":                {"cmd/internal/demo/screen", "cmd/internal/top"},
	"charm.land/lipgloss":                 {"cmd/internal/demo/screen", "cmd/internal/termtext", "cmd/internal/top"},
	"github.com/twmb/franz-go/pkg/kfake":  {"internal/kafkafake"},
	module + "/internal/testenv":          {"cmd/internal/gateway/gatewaytest"},
	module + "/limiter/limitertest":       nil,
	module + "/middleware/middlewaretest": nil,
	module + "/internal/wire/wiretest":    nil,
	module + "/internal/hotkeytest":       nil,
	module + "/internal/aggregatortest":   nil,
}

// mainOnly are import paths that only a main package may import, since the program has to choose
// them: time/tzdata is 450 KB of a binary.
var mainOnly = []string{"time/tzdata"}

type goPackage struct {
	ImportPath string
	Name       string
	Standard   bool
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
		if !known && isBelow(p.ImportPath, module+"/checks") {
			continue // what checks the product may use it
		}
		if !known {
			t.Errorf("package %s is not in the table: add it to arrows in imports_test.go, with what it may import", p.name())
			continue
		}
		for _, imported := range p.Imports {
			all := slices.Contains(allowed, "*") && !isBelow(imported, module+"/checks")
			if inModule(imported) && !all && !slices.Contains(allowed, shortName(imported)) {
				t.Errorf("%s imports %s; it may import only %q (see arrows in imports_test.go)", p.name(), shortName(imported), allowed)
			}
			if p.Name != "main" && slices.Contains(mainOnly, imported) {
				t.Errorf("%s imports %s, which is for a main package to choose", p.name(), imported)
			}
		}
	}
}

// Nested modules are released separately, so they may use only the packages that any user may use.
func TestNestedModulesUsePublicPackages(t *testing.T) {
	modules, err := filepath.Glob("adapters/*/go.mod")
	if err != nil || len(modules) == 0 {
		t.Fatalf("no adapters: %v", err)
	}
	allowed := append([]string{"middleware/middlewaretest"}, everythingPublic...)
	for _, file := range modules {
		own := module + "/" + path.Dir(filepath.ToSlash(file))
		for _, p := range list(t, "-test", own+"/...") {
			for _, imported := range p.Imports {
				imported, _, _ = strings.Cut(imported, " ") // "p [p.test]"
				if inModule(imported) && !isBelow(strings.TrimSuffix(imported, "_test"), own) && !slices.Contains(allowed, shortName(imported)) {
					t.Errorf("%s imports %s, which is not public", p.ImportPath, imported)
				}
			}
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "replace") {
			t.Errorf("%s has a replace, which who requires the module does not get", file)
		}
	}
}

func TestRequestPathIsStandardLibrary(t *testing.T) {
	all := listAll(t)
	for _, name := range standardOnly {
		for imported, by := range all.reach(t, name) {
			if p := all[imported]; !p.Standard && !inModule(imported) {
				t.Errorf("%s brings %s, which %s imports; it may bring only the standard library and our own packages", name, imported, by)
			}
		}
	}
}

func TestTestLibrariesStayInTests(t *testing.T) {
	all := listAll(t)
	for _, name := range everythingPublic {
		for imported, by := range all.reach(t, name) {
			for library := range testOnly {
				if library != "testing" && isBelow(imported, library) { // a client may import testing
					t.Errorf("%s brings %s, which %s imports and only tests may", name, imported, by)
				}
			}
		}
	}
	for _, p := range listPackages(t) {
		for _, imported := range p.Imports {
			for library, excepted := range testOnly {
				if isBelow(imported, library) && !slices.Contains(excepted, p.name()) && !isBelow(p.ImportPath, module+"/checks") {
					t.Errorf("%s imports %s outside of its tests", p.name(), imported)
				}
			}
		}
	}
}

// packageGraph maps import paths to packages.
type packageGraph map[string]goPackage

// listAll lists the module's packages and all their imports.
func listAll(t *testing.T) packageGraph {
	t.Helper()
	all := make(packageGraph)
	for _, p := range list(t, "-deps", "./...") {
		all[p.ImportPath] = p
	}
	return all
}

// reach returns the packages that one of ours imports, directly or indirectly, each with one that
// imports it.
func (g packageGraph) reach(t *testing.T, name string) map[string]string {
	t.Helper()
	path := module + "/" + name
	if name == "hotparam" {
		path = module
	}
	if _, ok := g[path]; !ok {
		t.Fatalf("there is no package %s", name)
	}
	by := make(map[string]string)
	for next := []string{path}; len(next) > 0; {
		from := next[0]
		next = next[1:]
		for _, imported := range g[from].Imports {
			if _, seen := by[imported]; !seen && imported != "C" {
				by[imported] = from
				next = append(next, imported)
			}
		}
	}
	return by
}

// The deployed program contains no test server and no template. With them the linker keeps every
// method of every type, which make up a third of its size.
func TestLeanBuild(t *testing.T) {
	for _, p := range list(t, "-deps", "-tags=lean,grpcnotrace", "./cmd/hotparam") {
		for _, path := range []string{"github.com/alicebob/miniredis", "github.com/yuin/gopher-lua", "github.com/twmb/franz-go/pkg/kfake", module + "/cmd/internal/demo", "html/template"} {
			if isBelow(p.ImportPath, path) {
				t.Errorf("it links %s", p.ImportPath)
			}
		}
	}
}

// listPackages lists the module's packages.
func listPackages(t *testing.T) []goPackage {
	t.Helper()
	return list(t, "./...")
}

func list(t *testing.T, args ...string) []goPackage {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Name,Standard,Imports"}, args...)...)
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
