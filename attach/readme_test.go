package attach

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// README's rules and the lines that attach them compile and work as they stand. Nothing else
// runs: the instance limits keys that are hot by its own count.
func TestREADME(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	rules := snippet(t, root, "## Say what is hot", "yaml")
	lines := snippet(t, root, "## Attach it to your API", "go")
	dir := t.TempDir()
	program := filepath.Join(dir, "program.go")
	write(t, program, fmt.Sprintf(`package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"

	"github.com/hotparam/hotparam/attach"
)

func main() {
	ctx, addr, mux := context.Background(), os.Args[1], http.NewServeMux()
	mux.HandleFunc("GET /search", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, r.FormValue("q")) })
%s}
`, lines))
	write(t, filepath.Join(dir, "hotparam.yaml"), rules)
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, "attach", "readme", "main.go"): program}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "overlay.json"), string(overlay))
	binary := filepath.Join(dir, "program")
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, "./attach/readme")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\nthe lines:\n%s", err, out, lines)
	}

	addr := fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))
	run := exec.CommandContext(t.Context(), binary, addr)
	run.Dir = dir
	log := new(testenv.Log)
	run.Stdout, run.Stderr = log, log
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = run.Process.Kill()
		_ = run.Wait()
	})
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: longest}
	get := func(q string) (status int) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/search?q="+q, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			return 0 // it is not up yet
		}
		res.Body.Close()
		return res.StatusCode
	}
	end := time.Now().Add(longest)
	for get("phone") != http.StatusTooManyRequests {
		if time.Now().After(end) {
			t.Fatalf("no request for a hot key was refused within %v; the log:\n%s", longest, log)
		}
	}
	if status := get("boat"); status != http.StatusOK {
		t.Errorf("a key that is not hot: status %d", status)
	}
	if strings.Contains(log.String(), "connection pool") {
		t.Errorf("go-redis logs each try:\n%s", log)
	}
}

// snippet returns the first block of a language below a heading of README.
func snippet(t *testing.T, root, heading, language string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, below, found := strings.Cut(string(text), "\n"+heading+"\n")
	block := regexp.MustCompile("(?s)```" + language + "\n(.*?)```\n").FindStringSubmatch(below)
	if !found || block == nil {
		t.Fatalf("README has no %s block below %q", language, heading)
	}
	return block[1]
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
