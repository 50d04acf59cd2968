package limiter_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// snippetImports are what the snippets of docs/COMING-FROM.md may use, by package name.
var snippetImports = map[string]string{
	"context": "context", "errors": "errors", "fmt": "fmt", "time": "time",
	"hotparam":     "github.com/hotparam/hotparam",
	"limiter":      "github.com/hotparam/hotparam/limiter",
	"adaptive":     "github.com/hotparam/hotparam/limiter/adaptive",
	"permits":      "github.com/hotparam/hotparam/limiter/permits",
	"semaphore":    "github.com/hotparam/hotparam/limiter/semaphore",
	"redislimiter": "github.com/hotparam/hotparam/limiter/redislimiter",
	"redis":        "github.com/redis/go-redis/v9",
}

// Each block of Go in the page compiles, as the body of a function that has the variables
// which the page names. The sources are an overlay of a directory that does not exist.
func TestComingFromCompiles(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "COMING-FROM.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)\n```go\n(.*?)\n```\n").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 7 {
		t.Fatalf("%d blocks of Go, want one for each limiter at least", len(blocks))
	}
	const signature = "ctx context.Context, client redis.UniversalClient, backend limiter.Backend"
	var body strings.Builder
	for i, b := range blocks {
		end := "return nil\n"
		if last := b[1][strings.LastIndex(b[1], "\n")+1:]; strings.HasPrefix(last, "return ") {
			end = ""
		}
		fmt.Fprintf(&body, "\nfunc _(%s) error {\n// block %d\n%s\n%s}\n", signature, i+1, b[1], end)
	}
	src := "package comingfrom\n\nimport (\n"
	for name, path := range snippetImports {
		if regexp.MustCompile(`\b` + name + `\.[A-Z]`).MatchString(body.String()) {
			src += fmt.Sprintf("\t%q\n", path)
		}
	}
	src += ")\n" + body.String()

	dir := t.TempDir()
	file := filepath.Join(dir, "comingfrom.go")
	if err := os.WriteFile(file, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(here, "comingfrom", "comingfrom.go"): file}})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", list, "./comingfrom").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s\n%s", err, out, src)
	}
}
