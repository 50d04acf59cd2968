//go:build real

package check

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/internal/testenv"
)

// The clients in examples/clients are refused as the rules say, and pass while the guard is
// unavailable.
func TestClients(t *testing.T) {
	nowhere := fmt.Sprintf("http://127.0.0.1:%d", testenv.FreePort(t))
	for name, client := range map[string]func(t *testing.T) []string{
		"check.py": func(t *testing.T) []string { return []string{real.Python(t)} },
		"check.mjs": func(t *testing.T) []string {
			node, _ := real.Node(t)
			return []string{node}
		},
		"Check.java": func(t *testing.T) []string { return []string{real.Java(t), "-XX:TieredStopAtLevel=1"} },
		"check.sh":   func(*testing.T) []string { return []string{"sh"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			words := client(t)
			f := open(t, gateway.DoorConfig{})
			file := filepath.Join("..", "..", "..", "..", "examples", "clients", name)
			for base, want := range map[string]string{f.base: "200 429 200 200", nowhere: "200 200 200 200"} {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				args := append(slices.Clone(words[1:]), file, base, "/search?q=a", "//search?q=%61", "/search?q=b", "/slow")
				cmd := exec.CommandContext(ctx, words[0], args...)
				cmd.Env = append(os.Environ(), "HOTPARAM_TIMEOUT=20") // for a busy machine
				out, err := cmd.CombinedOutput()
				if got := strings.Join(strings.Fields(string(out)), " "); err != nil || got != want {
					t.Errorf("%s: %q, %v, want %q", base, out, err, want)
				}
			}
			if s := f.Tickets.Stats(); s.Held != 0 {
				t.Errorf("%+v: a ticket was not ended", s)
			}
		})
	}
}
