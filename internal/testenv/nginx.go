package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Gateway is a gateway that belongs to one test.
type Gateway struct {
	Addr    string // host:port
	Process *Process
}

// Nginx starts an nginx by the configuration in a directory of deploy/gateways, in which it
// replaces addresses ("127.0.0.1:8080" by that of the test's application); "listen 8000" is
// replaced already. It returns when nginx listens. Without an nginx that knows the modules
// that the configuration loads the test is skipped (see the package).
func Nginx(tb testing.TB, name string, addresses map[string]string) *Gateway {
	tb.Helper()
	path := NginxPath(tb)
	process, addr := startGateway(tb, "nginx", func(port int) (*Process, error) {
		dir, err := gatewayFiles(tb, name, with(addresses, "listen 8000;", fmt.Sprintf("listen 127.0.0.1:%d;", port)))
		if err != nil {
			return nil, err
		}
		config := filepath.Join(dir, "nginx.conf")
		if err := placeFiles(config, dir); err != nil {
			return nil, err
		}
		global := "daemon off; master_process off; worker_processes 1; pid nginx.pid;"
		return Start(tb, exec.Command(path, "-p", dir, "-c", config, "-e", "stderr", "-g", global)), nil
	})
	return &Gateway{addr, process}
}

// NginxPath returns the path of the program. Without one the test is skipped.
func NginxPath(tb testing.TB) string {
	tb.Helper()
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} { // which is not in every user's PATH
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	unavailable(tb, "no nginx in PATH: install it (Debian: apt-get install nginx)")
	return ""
}

// placeFiles has nginx write its files into dir, where any user may.
func placeFiles(config, dir string) error {
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	var lines strings.Builder
	lines.WriteString("http {\n  access_log off;\n")
	for _, of := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&lines, "  %s_temp_path %s;\n", of, filepath.Join(dir, of))
	}
	return os.WriteFile(config, []byte(strings.Replace(string(text), "http {\n", lines.String(), 1)), 0o600)
}

// with returns the addresses and one more.
func with(addresses map[string]string, old, now string) map[string]string {
	all := map[string]string{old: now}
	for old, now := range addresses {
		all[old] = now
	}
	return all
}
