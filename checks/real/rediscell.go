package real

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

const redisCellVersion = "0.2.2"

// redisCellCargo names the crate of redis-cell, of the version that is tested.
//
//go:embed rediscell_cargo.toml
var redisCellCargo []byte

// RedisCell starts a Redis with the module redis-cell, which adds the command CL.THROTTLE. The
// module is built once from its crate. Without cargo, a C compiler or the registry the test is
// skipped (see the package).
func RedisCell(tb testing.TB) *testenv.RedisServer {
	tb.Helper()
	module, err := redisCellModule(tb.Context())
	if err != nil {
		testenv.Unavailable(tb, fmt.Sprintf("no module redis-cell: install Rust and a C compiler (Debian: apt-get install cargo gcc): %v", err))
	}
	return testenv.RedisModule(tb, module)
}

// redisCellModule returns the path of the module.
func redisCellModule(ctx context.Context) (string, error) {
	const file = "libredis_cell.so"
	dir, err := cached(ctx, "redis-cell-"+redisCellVersion, func(ctx context.Context, work string) error {
		scratch := filepath.Join(work, "build")
		built, err := buildRedisCell(ctx, scratch)
		if err != nil {
			return err
		}
		return errors.Join(os.Rename(built, filepath.Join(work, file)), os.RemoveAll(scratch))
	})
	if err != nil {
		return "", fmt.Errorf("build redis-cell: %w", err)
	}
	return filepath.Join(dir, file), nil
}

// buildRedisCell builds the module in a new directory. It builds the crate itself and not
// something that depends on it, so that Rust's standard library is linked in.
func buildRedisCell(ctx context.Context, scratch string) (string, error) {
	cargo, err := findCargo()
	if err != nil {
		return "", err
	}
	if _, err := exec.LookPath("cc"); err != nil {
		return "", err
	}
	if err := os.Mkdir(scratch, 0o700); err != nil {
		return "", err
	}
	for name, text := range map[string][]byte{"Cargo.toml": redisCellCargo, "fetch.rs": nil} {
		if err := os.WriteFile(filepath.Join(scratch, name), text, 0o600); err != nil {
			return "", err
		}
	}
	if err := runIn(ctx, scratch, cargo, "vendor", "--quiet"); err != nil {
		return "", err
	}
	vendor, target := filepath.Join(scratch, "vendor"), filepath.Join(scratch, "target")
	err = runIn(ctx, filepath.Join(vendor, "redis-cell"), cargo, "build", "--release", "--offline", "--quiet", "--target-dir", target,
		"--config", `source.crates-io.replace-with="vendored"`, "--config", fmt.Sprintf("source.vendored.directory=%q", vendor))
	return filepath.Join(target, "release", "libredis_cell.so"), err
}

// findCargo looks for cargo in the PATH and in the directory of its installer.
func findCargo() (string, error) {
	path, err := exec.LookPath("cargo")
	if err == nil {
		return path, nil
	}
	home, homeErr := os.UserHomeDir()
	if homeErr != nil {
		return "", errors.Join(err, homeErr)
	}
	path = filepath.Join(home, ".cargo", "bin", "cargo")
	if _, statErr := os.Stat(path); statErr != nil {
		return "", err
	}
	return path, nil
}
