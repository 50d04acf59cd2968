package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/config"
)

const repository = "../.."

// snippet is a block of code in a document.
type snippet struct {
	path, language, text string
	line                 int // number of the text's first line
}

func (s snippet) String() string { return fmt.Sprintf("%s:%d", s.path, s.line) }

// notHere are the code blocks that are not checked here, by document and language: their number
// and the reason.
var notHere = map[string]struct {
	n   int
	why string
}{
	"adapters/fiber/README.md go":      {1, "checks/release runs it outside of the repository"},
	"adapters/fiber/README.md sh":      {1, "checks/release runs it outside of the repository"},
	"adapters/chi/README.md go":        {1, "checks/release runs it outside of the repository"},
	"adapters/connect/README.md go":    {2, "checks/release runs the first outside of the repository, onhot_test.go the second"},
	"adapters/connect/README.md sh":    {1, "checks/release runs it outside of the repository"},
	"adapters/grpc/README.md go":       {1, "checks/release runs it outside of the repository"},
	"adapters/grpc/README.md sh":       {1, "checks/release runs it outside of the repository"},
	"adapters/chi/README.md sh":        {1, "checks/release runs it outside of the repository"},
	"adapters/echo/README.md go":       {1, "checks/release runs it outside of the repository"},
	"adapters/echo/README.md sh":       {1, "checks/release runs it outside of the repository"},
	"adapters/gin/README.md go":        {1, "checks/release runs it outside of the repository"},
	"adapters/gin/README.md sh":        {1, "checks/release runs it outside of the repository"},
	"docs/PRODUCERS.md bash":           {2, "checks/interop runs the programs that they are parts of"},
	"docs/PRODUCERS.md java":           {4, "checks/interop"},
	"docs/PRODUCERS.md js":             {3, "checks/interop"},
	"docs/PRODUCERS.md python":         {9, "checks/interop"},
	"docs/PRODUCERS.md sh":             {3, "checks/interop"},
	"docs/WATCHING.md python":          {1, "cmd/internal/webhook"},
	"docs/WATCHING.md json":            {1, "cmd/internal/history"},
	"docs/gateways/caddy.md caddyfile": {1, "cmd/internal/gateway/auth"},
	"docs/gateways/haproxy.md haproxy": {1, "cmd/internal/gateway/spoe"},
	"docs/gateways/nginx.md nginx":     {1, "cmd/internal/gateway/auth"},
}

// pictures are the numbers of blocks without a language, by document.
var pictures = map[string]int{
	"README.md": 1, "docs/DESIGN.md": 1, "docs/GRAPHITE.md": 1, "docs/KAFKA.md": 1, "docs/design/history.md": 1, // drawings
	"docs/COMING-FROM.md":    1, // the variables of snippetFrame
	"docs/LIMITS.md":         1, // headers
	"docs/PRODUCERS.md":      1, // lines of the wire
	"docs/REDIS.md":          7, // rights, which the tests of hotkeys, redislimiter and history give to users of a Redis
	"docs/REPLAY.md":         1, // what replay --suggest prints
	"docs/RUNNING.md":        1, // what rules suggest prints
	"docs/gateways/envoy.md": 3, // commands, headers, and what the tests of cmd/internal/gateway/rls give to Envoy
	// Tests of cmd/internal/gateway/auth pass these to gateways, whose YAML is not hotparam's.
	"docs/gateways/envoy-extauthz.md": 1,
	"docs/gateways/traefik.md":        2,
	"docs/WATCHING.md":                4, // a stream of events as it is sent, what commands print, and what a dialog says
}

// Every code block in the documents is linted, compiled or parsed, or is listed with a reason.
func TestDocumentsHaveNoOtherSnippets(t *testing.T) {
	others, plain := make(map[string]int), make(map[string]int)
	for _, s := range snippets(t) {
		_, elsewhere := notHere[s.path+" "+s.language]
		switch {
		case s.language == "":
			plain[s.path]++
		case elsewhere, !slices.Contains([]string{"yaml", "go", "sh"}, s.language):
			others[s.path+" "+s.language]++
		}
	}
	listed := make(map[string]int)
	for key, x := range notHere {
		listed[key] = x.n
	}
	if !maps.Equal(others, listed) {
		t.Errorf("blocks that are checked nowhere or elsewhere: %v\nlisted are %v", others, listed)
	}
	if !maps.Equal(plain, pictures) {
		t.Errorf("blocks without a language: %#v\nlisted are %#v", plain, pictures)
	}
}

// Files in the documents are valid and have no warnings, except for a listener that is open to the
// network, and for a limit that needs another one with it. A list is one of rules. Settings
// without rules get one.
func TestDocumentedFilesAreGood(t *testing.T) {
	n := 0
	for _, s := range checked(t, "yaml") {
		n++
		source := s.text
		switch {
		case strings.HasPrefix(strings.TrimLeft(source, " "), "- "):
			source = "rules:\n" + source
		case !regexp.MustCompile(`(?m)^rules:`).MatchString(source):
			source += "rules: [{id: any, match: {route: '*'}, limit: 1/s}]\n"
		}
		f, err := config.Parse(s.String(), []byte(source))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, w := range f.Warnings() {
			if !strings.HasPrefix(w.Message, "aggregator.listen ") && !strings.Contains(w.Message, "no limit by address") {
				t.Error(config.Problems{w})
			}
		}
	}
	if n < 20 {
		t.Errorf("%d files", n)
	}
}

// snippetFrame declares the names that Go snippets may use without declaring them.
const snippetFrame = `ctx context.Context, mux *http.ServeMux, addr, user string, file *config.File, guard *middleware.Guard, hp *hotparam.Hotparam, ruleset *rules.Rules,
	counts *collector.Collector, client redis.UniversalClient, backend limiter.Backend, store *redislimiter.Store`

// foreignImports are the packages of other modules that snippets may use, by name.
var foreignImports = map[string]string{
	"context": "context", "errors": "errors", "fmt": "fmt", "http": "net/http", "log": "log", "maps": "maps", "netip": "net/netip", "os": "os", "slog": "log/slog", "url": "net/url", "time": "time", "redis": "github.com/redis/go-redis/v9",
	"prometheus": "github.com/prometheus/client_golang/prometheus", "promhttp": "github.com/prometheus/client_golang/prometheus/promhttp",
}

// Each block of Go compiles as the body of a function. The source is an overlay in a directory
// that does not exist.
func TestDocumentedGoCompiles(t *testing.T) {
	imports := maps.Clone(foreignImports)
	for _, line := range strings.Fields(goCommand(t, "list", "-f", "{{.Name}}={{.ImportPath}}", "./...")) {
		if name, path, _ := strings.Cut(line, "="); name != "main" && !strings.Contains(path, "/internal/") {
			imports[name] = path
		}
	}
	var body strings.Builder
	n := 0
	for _, s := range checked(t, "go") {
		n++
		uses := ""
		for _, name := range declared(t, s) {
			uses += "_ = " + name + "\n"
		}
		end := "return nil\n"
		if last := strings.TrimSpace(s.text); strings.HasPrefix(last[strings.LastIndex(last, "\n")+1:], "return ") {
			end, uses = "", ""
		}
		fmt.Fprintf(&body, "\nfunc _(%s) error {\n{\n//line %s:%d\n%s\n%s%s}\n}\n", snippetFrame, filepath.Base(s.path), s.line, s.text, uses, end)
	}
	if n < 10 {
		t.Errorf("%d blocks of Go", n)
	}
	source := "package snippets\n\nimport (\n"
	for name, path := range imports {
		if regexp.MustCompile(`\b` + name + `\.[A-Z]`).MatchString(body.String()) {
			source += fmt.Sprintf("\t%s %q\n", name, path)
		}
	}
	source += ")\n" + body.String()

	dir := t.TempDir()
	file, list := filepath.Join(dir, "snippets.go"), filepath.Join(dir, "overlay.json")
	at, err := filepath.Abs(filepath.Join(repository, "snippets", "snippets.go"))
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {at: file}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{file: []byte(source), list: overlay} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	goCommand(t, "build", "-overlay", list, "./snippets")
}

// declared returns the names that a block declares and need not use.
func declared(t *testing.T, s snippet) (names []string) {
	file, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc _() {\n"+s.text+"\n}", 0)
	if err != nil {
		t.Errorf("%v: %v", s, err)
		return nil
	}
	for _, statement := range file.Decls[0].(*ast.FuncDecl).Body.List {
		assign, ok := statement.(*ast.AssignStmt)
		if !ok || assign.Tok != token.DEFINE {
			continue
		}
		for _, left := range assign.Lhs {
			if name := left.(*ast.Ident).Name; name != "_" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func goCommand(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir = repository
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// checked returns the blocks of a language that are checked here.
func checked(t *testing.T, language string) []snippet {
	return slices.DeleteFunc(snippets(t), func(s snippet) bool {
		_, elsewhere := notHere[s.path+" "+s.language]
		return elsewhere || s.language != language
	})
}

// snippets returns the blocks of code of all documents, in their order.
func snippets(t *testing.T) (all []snippet) {
	fence := regexp.MustCompile("(?ms)^[ \t]*```([a-z]*)\n(.*?)^[ \t]*```$")
	for path, text := range documents(t) {
		for _, at := range fence.FindAllStringSubmatchIndex(text, -1) {
			all = append(all, snippet{path, text[at[2]:at[3]], text[at[4]:at[5]], 1 + strings.Count(text[:at[4]], "\n")})
		}
		if fences := strings.Count(text, "```"); fences != 2*len(fence.FindAllString(text, -1)) {
			t.Errorf("%s: %d fences that are not blocks of their own", path, fences)
		}
	}
	slices.SortFunc(all, func(a, b snippet) int { return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.line, b.line)) })
	return all
}

// documents returns the texts of all documents, by path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := fs.WalkDir(os.DirFS(repository), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && strings.HasPrefix(entry.Name(), "."), entry.Name() == "node_modules", entry.Name() == "testdata":
			return fs.SkipDir
		case strings.HasSuffix(path, ".md"):
			text, err := os.ReadFile(filepath.Join(repository, path))
			found[path] = string(text)
			return err
		}
		return nil
	})
	if err != nil || len(found) < 15 {
		t.Fatalf("%d documents: %v", len(found), err)
	}
	return found
}

// Metrics that other documents name exist.
func TestDocumentsNameMetricsThatExist(t *testing.T) {
	page, err := os.ReadFile("../../METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for path, text := range documents(t) {
		if path == "METRICS.md" || path == "CHANGELOG.md" {
			continue
		}
		for _, name := range regexp.MustCompile(`@?\bhotparam_[a-z_]+\b`).FindAllString(text, -1) {
			if name[0] == '@' {
				continue // a location of nginx
			}
			n++
			if !strings.HasSuffix(name, "_") && !regexp.MustCompile("(?m)^\\| `"+name+"[{`]").Match(page) {
				t.Errorf("%s: METRICS.md does not have %s", path, name)
			}
		}
	}
	if n < 20 {
		t.Errorf("documents name %d metrics", n)
	}
}
